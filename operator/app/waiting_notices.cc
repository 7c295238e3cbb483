#include "operator/app/waiting_notices.h"

#include <utility>
#include <variant>

#include "operator/app/notice_proto.h"
#include "operator/planner/notice_topic.h"

namespace ringmaster::app {

void WaitingNotices::Add(planner::Notice notice) {
  if (const auto* gone = std::get_if<planner::PodsGoneNotice>(&notice)) gone_.Add(gone->pods);
  std::string topic = planner::TopicOf(notice);
  if (const auto older = by_topic_.find(topic); older != by_topic_.end()) {
    older->second->notice = std::move(notice);
    return;
  }
  const auto at = waiting_.insert(waiting_.end(), {topic, std::move(notice)});
  by_topic_.emplace(std::move(topic), at);
}

std::optional<v1::OperatorNotice> WaitingNotices::Next() {
  while (!waiting_.empty()) {
    const bool of_gone = std::holds_alternative<planner::PodsGoneNotice>(waiting_.front().notice);
    if (of_gone) {
      if (const std::optional<planner::GonePod> pod = gone_.Next()) return ToProto(*pod);
    }
    const Waiting first = std::move(waiting_.front());
    waiting_.pop_front();
    by_topic_.erase(first.topic);
    if (!of_gone) return ToProto(first.notice);
  }
  return std::nullopt;
}

}  // namespace ringmaster::app
