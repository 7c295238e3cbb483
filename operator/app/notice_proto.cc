#include "operator/app/notice_proto.h"

#include <string>
#include <variant>

#include "common/membership/view_json.h"

namespace ringmaster::app {

v1::OperatorNotice ToProto(const planner::Notice& notice) {
  v1::OperatorNotice out;
  if (const auto* found = std::get_if<planner::ViewDecidedNotice>(&notice)) {
    out.mutable_view_decided()->set_view(membership::EncodeView(*found->view));
  } else if (const auto* drain = std::get_if<planner::DrainNotice>(&notice)) {
    for (const std::string& uid : *drain->pod_uids) out.mutable_drain()->add_pod_uids(uid);
    out.mutable_drain()->set_reason(drain->reason);
    out.mutable_drain()->set_deadline_unix_ms(drain->deadline_unix_ms);
    out.mutable_drain()->set_all_leave(drain->all_leave);
  } else if (const auto* target = std::get_if<planner::TargetNotice>(&notice)) {
    out.mutable_target()->set_min_pods(target->sizes.least);
    for (const std::uint32_t pods : target->sizes.allowed)
      out.mutable_target()->add_allowed_pods(pods);
    out.mutable_target()->set_expected_pods(target->expected_pods);
  } else if (const auto* finish = std::get_if<planner::FinishNotice>(&notice)) {
    out.mutable_finish()->set_reason(finish->reason);
  } else if (const auto* recover = std::get_if<planner::RecoverNotice>(&notice)) {
    out.mutable_recover()->set_lineage(recover->lineage);
    out.mutable_recover()->set_fresh_workers(recover->fresh_workers);
  } else if (const auto* wanted = std::get_if<planner::ViewWantedNotice>(&notice)) {
    out.mutable_view_wanted()->set_epoch(wanted->epoch);
  }
  return out;
}

v1::OperatorNotice ToProto(const planner::GonePod& pod) {
  v1::OperatorNotice out;
  out.mutable_pod_gone()->set_pod_uid(pod.uid);
  out.mutable_pod_gone()->set_reason(pod.reason);
  return out;
}

void AddTimeLeft(std::int64_t now_unix_ms, v1::OperatorNotice* notice) {
  if (!notice->has_drain() || notice->drain().deadline_unix_ms() == 0) return;
  v1::Drain* drain = notice->mutable_drain();
  drain->set_left_ms(drain->deadline_unix_ms() - now_unix_ms);
}

}  // namespace ringmaster::app
