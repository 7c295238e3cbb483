#include "operator/kueue/next_write.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/fields/fields.h"

namespace ringmaster::kueue {
namespace {

using Kind = Write::Kind;

// A patch replaces the whole list of conditions. The version makes the API server refuse the patch
// if another client has written since.
Json Versioned(const Json& live) {
  return {{"metadata", {{"resourceVersion", fields::TextAt(live, "/metadata/resourceVersion")}}}};
}

// The conditions of `live` with changes to them.
class Conditions {
 public:
  Conditions(const Json& live, api::Time now)
      : list_(fields::ListAt(live, "/status/conditions")),
        generation_(fields::IntegerAt(live, "/metadata/generation")),
        now_(api::FormatTime(now)) {}

  // Returns true if the condition has changed.
  bool Set(const char* type, bool on, const std::string& reason, const std::string& message) {
    const std::string status = on ? "True" : "False";
    auto at = std::find_if(list_.begin(), list_.end(), [&](const Json& condition) {
      return fields::Text(condition, "type") == type;
    });
    if (at == list_.end()) {
      list_.push_back({{"type", type}});
      at = std::prev(list_.end());
    }
    Json& condition = *at;
    const bool turned = fields::Text(condition, "status") != status;
    if (!turned && fields::Text(condition, "reason") == reason) return false;
    if (turned) condition["lastTransitionTime"] = now_;
    condition["status"] = status;
    condition["reason"] = reason;
    condition["message"] = message;
    condition["observedGeneration"] = generation_;
    return true;
  }
  const Json& list() const { return list_; }

 private:
  Json list_;
  const std::int64_t generation_;
  const std::string now_;
};

Write ChangeStatus(const Json& live, Json status, std::string why) {
  Json patch = Versioned(live);
  patch["status"] = std::move(status);
  return {Kind::kChangeStatus, std::move(patch), std::move(why)};
}

Write End(const JobNeeds& needs, const Json& live) {
  Conditions conditions(live, needs.now);
  conditions.Set(kFinished, true, needs.succeeded ? "Succeeded" : "Failed", needs.end);
  return ChangeStatus(live, {{"conditions", conditions.list()}}, "the job has ended");
}

// A preempted workload is put in line again at once. After any other eviction it stays out of the
// line until Kueue itself ends that.
bool IsBackInLineAtOnce(const std::string& reason) {
  return reason == "Preempted" || reason == "NodeFailures";
}

// Answers an eviction by releasing the quota. Kueue leaves this to the owner of the pods, because
// only the owner knows when the last one has ended.
Write ReleaseQuota(const JobNeeds& needs, const Json& live) {
  const Json& evicted = *FindCondition(live, kEvicted);
  const std::string reason = fields::Text(evicted, "reason");
  const std::string message = fields::Text(evicted, "message");
  Conditions conditions(live, needs.now);
  conditions.Set(kQuotaReserved, false, "Pending", message);
  if (FindCondition(live, kAdmitted) != nullptr) {
    conditions.Set(kAdmitted, false, "NoReservation", "The workload has no reservation");
  }
  conditions.Set(kRequeued, IsBackInLineAtOnce(reason), reason, message);
  conditions.Set(kPodsReady, false, "WaitForStart", "the pods of the job have ended");
  // The job waits for all of its pods again, so nothing is reclaimable.
  return ChangeStatus(
      live,
      {{"conditions", conditions.list()}, {"admission", nullptr}, {"reclaimablePods", nullptr}},
      "it was evicted, and no pod is left");
}

Write KeepPodsReady(const JobNeeds& needs, const Json& live) {
  const Json* before = FindCondition(live, kPodsReady);
  const std::string reason_before = before == nullptr ? "" : fields::Text(*before, "reason");
  const bool ready_before = before != nullptr && fields::Text(*before, "status") == "True";
  const bool was_ready = ready_before || reason_before == "WaitForRecovery";
  const bool ready = needs.least > 0 && needs.pods_running >= needs.least;
  if (ready == ready_before && before != nullptr) return {};
  const std::string reason = ready ? (was_ready ? "Recovered" : "Started")
                                   : (was_ready ? "WaitForRecovery" : "WaitForStart");
  Conditions conditions(live, needs.now);
  if (!conditions.Set(kPodsReady, ready, reason,
                      fmt::format("{} pods run, and with {} the job trains", needs.pods_running,
                                  needs.least))) {
    return {};
  }
  return ChangeStatus(live, {{"conditions", conditions.list()}}, "its pods");
}

// Gives back quota that a smaller job doesn't need any more; the job gets it again only by a new
// admission. Kueue subtracts `reclaimablePods` from what the job asks for, and not from what was
// admitted.
Write Reclaim(const JobNeeds& needs, const Json& live, const WorkloadFacts& facts) {
  const int used = std::max(needs.wanted, needs.pods_alive);
  if (needs.wanted == 0 || used >= facts.Granted()) return {};
  const int spare = facts.asked - used;
  return ChangeStatus(live,
                      {{"reclaimablePods", Json::array({{{"name", kPodSet}, {"count", spare}}})}},
                      "the job was made smaller");
}

Write WhileAdmitted(const JobNeeds& needs, const Json& live, const WorkloadFacts& facts) {
  Write write = KeepPodsReady(needs, live);
  if (write.kind == Kind::kNothing) write = Reclaim(needs, live, facts);
  return write;
}

Write WhileWaiting(const Json& live, const Json& wanted, const WorkloadFacts& facts) {
  if (facts.reclaimable > 0) {
    return ChangeStatus(live, {{"reclaimablePods", nullptr}}, "it waits for all of its pods again");
  }
  if (AskTheSame(live, wanted)) return {};
  Json patch = Versioned(live);
  patch["metadata"]["annotations"] = wanted["metadata"]["annotations"];
  patch["spec"] = wanted["spec"];
  // A merge patch keeps fields that it doesn't name, so absent ones are set to null.
  for (const char* field : {"priority", "priorityClassRef"}) {
    if (!wanted["spec"].contains(field)) patch["spec"][field] = nullptr;
  }
  return {Kind::kChange, std::move(patch), "the job asks for something else"};
}

// The job can't use this admission (QueueStateOf decides the same way): it asks for another one
// when its pods have gone.
bool IsOfNoUse(const JobNeeds& needs, const WorkloadFacts& facts, const Json& wanted) {
  return facts.quota_reserved && (facts.queue != fields::TextAt(wanted, "/spec/queueName") ||
                                  facts.Granted() < needs.least);
}

}  // namespace

Write NextWrite(const JobNeeds& needs, const Json* live, const Json& wanted) {
  const bool ended = needs.succeeded || needs.failed;
  if (live == nullptr) {
    if (ended || !needs.wants_quota || needs.pods_left) return {};
    return {Kind::kCreate, wanted, "the job asks for quota"};
  }
  const WorkloadFacts facts = ReadWorkload(*live);
  if (facts.deleting) return {};
  if (ended) return facts.finished || needs.pods_left ? Write{} : End(needs, *live);
  // The pods use the Workload's quota until they have ended.
  const auto remove = [&](const char* why) {
    return needs.pods_left ? Write{} : Write{Kind::kDelete, {}, why};
  };
  if (!needs.wants_quota) return remove("the job is suspended, or names no queue");
  if (facts.finished) return remove("it is finished, and the job is not");
  if (facts.evicted && facts.quota_reserved) {
    return needs.pods_left ? Write{} : ReleaseQuota(needs, *live);
  }
  if (needs.gives_up_admission && facts.quota_reserved) return remove("the job was suspended");
  if (IsOfNoUse(needs, facts, wanted)) return remove("the job has no use for the admission");
  if (facts.quota_reserved) return WhileAdmitted(needs, *live, facts);
  return WhileWaiting(*live, wanted, facts);
}

}  // namespace ringmaster::kueue
