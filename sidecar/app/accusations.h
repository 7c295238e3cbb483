// When to believe another member that it does not hear some pods.
//
// In a large view each pod watches few others, so what is gone with several pods is seen piece by
// piece: each word of it would make a view of its own, and those that watch all of the dead, which
// are few, would be taken for the ones that hear nobody. So what is told waits until this sidecar
// knows of every pod around those that are accused that it lives or is silent. Where one pod alone
// is gone the others answer within milliseconds. Where two are, both are accused by then, and this
// sidecar need not see it for itself, which takes a second.
//
// Members say again and again what they have to say, so a word that came too early is dropped.
//
// Thread rule: the sidecar's loop only.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster::app {

class Accusations {
 public:
  // Looks at the pods around this one. The answer: of which of them it is not known yet whether
  // they live.
  using LookAround = std::function<std::vector<std::string>(const std::string& uid)>;

  explicit Accusations(LookAround look_around) : look_around_(std::move(look_around)) {}

  void EnterView() {
    told_.clear();
    believed_ = 0;
    accusers_.clear();
  }
  // False: the member `by` has said so of the pod before, in this view.
  bool IsNews(const std::string& by, const std::string& uid) {
    return accusers_.emplace(by, uid).second;
  }
  // A member of the view says that these are not heard.
  bool MayBelieve(const std::vector<std::string>& uids) {
    for (const std::string& uid : uids) {
      if (told_.insert(uid).second) look_around_(uid);  // all of them are looked at from now on
    }
    if (believed_ == told_.size()) return true;  // said again
    const bool few = told_.size() <= 2 && uids.size() == 1;
    for (const std::string& uid : told_) {
      for (const std::string& other : look_around_(uid)) {
        if (!few || !told_.contains(other)) return false;
      }
    }
    believed_ = told_.size();
    return true;
  }

 private:
  const LookAround look_around_;
  std::set<std::string> told_;                              // in this view
  std::size_t believed_ = 0;                                // how many of them
  std::set<std::pair<std::string, std::string>> accusers_;  // with the pod that each accuses
};

}  // namespace ringmaster::app
