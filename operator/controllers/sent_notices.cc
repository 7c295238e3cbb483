#include "operator/controllers/sent_notices.h"

#include <utility>
#include <variant>

#include "operator/planner/notice_topic.h"

namespace ringmaster::controllers {
namespace {

// Unites lists of one kind with the one that is known: a list that differs is known from then on.
template <class List>
class Uniter {
 public:
  explicit Uniter(List* known) : known_(*known) {}
  void Unite(List* list) {
    if (*list != as_made_) {
      as_made_ = *list;
      if (known_ == nullptr || *known_ != *as_made_) known_ = as_made_;
    }
    *list = known_;
  }

 private:
  List& known_;
  List as_made_;  // the last one, before it was united: the next one is mostly the same object
};

}  // namespace

std::vector<planner::Notice> SentNotices::New(const std::vector<planner::Notice>& all) {
  std::map<std::string, planner::Notice> before = std::exchange(newest_, {});
  std::vector<planner::Notice> unsent;
  for (const planner::Notice& notice : all) {
    const std::string topic = planner::TopicOf(notice);
    const auto sent = before.find(topic);
    if (sent == before.end() || sent->second != notice) unsent.push_back(notice);
    newest_.insert_or_assign(topic, notice);
  }
  return unsent;
}

void SharedLists::Share(std::vector<planner::PodNotice>* notices) {
  Uniter<planner::GonePods> gone(&gone_);
  Uniter<planner::Uids> leaving(&leaving_);
  for (planner::PodNotice& told : *notices) {
    if (auto* of_gone = std::get_if<planner::PodsGoneNotice>(&told.notice)) {
      gone.Unite(&of_gone->pods);
    } else if (auto* drain = std::get_if<planner::DrainNotice>(&told.notice)) {
      if (drain->pod_uids->size() > 1) leaving.Unite(&drain->pod_uids);
    }
  }
}

}  // namespace ringmaster::controllers
