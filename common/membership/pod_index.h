// Finds the pods of a view by their uids, in a time that does not grow with the view: a coordinator
// looks up the sender of each message, and large jobs send it thousands at once.
#pragma once

#include <string_view>
#include <unordered_map>

#include "common/membership/view.h"

namespace ringmaster::membership {

class PodIndex {
 public:
  // `view` must outlive this, or the next call. Null: no pods.
  void Set(const View* view) {
    index_.clear();
    if (view == nullptr) return;
    index_.reserve(view->pods.size());
    for (std::size_t i = 0; i < view->pods.size(); ++i)
      index_.emplace(view->pods[i].uid, static_cast<int>(i));
  }
  // As View::FindPod.
  int Find(std::string_view uid) const {
    const auto at = index_.find(uid);
    return at == index_.end() ? -1 : at->second;
  }

 private:
  std::unordered_map<std::string_view, int> index_;
};

}  // namespace ringmaster::membership
