// Jobs in a queue of Kueue: what is admitted bounds the size, and without an admission there are no
// pods. They go as those of a suspended job do.
#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/plan_context.h"

namespace ringmaster::planner {
namespace {

using kueue::Stage;

bool HasPods(const Snapshot& in) {
  return std::any_of(in.pods.begin(), in.pods.end(),
                     [](const PodFacts& pod) { return !pod.ended() && !pod.deleting; });
}

}  // namespace

void ObserveQueue(PlanContext& plan) {
  const Snapshot& in = plan.in;
  if (!in.queue || JobHasEnded(in) || in.job.Suspended()) return;
  switch (in.queue->stage) {
    case Stage::kAdmitted:
      plan.wanted = in.job.WantedPodsOf(in.queue->pods);
      return;
    case Stage::kUnknown:
      // An operator that has just begun knows nothing of a job that trains.
      plan.queued = !HasPods(in);
      return;
    case Stage::kWaits:
      plan.queued = true;
      return;
    case Stage::kLeaves:
      // All ranks have agreed to end: that takes less time than to begin again.
      plan.queued = in.job.status.finished_epoch == 0 || !HasPods(in);
      return;
  }
}

bool IsQueueTrouble(const PlanContext& plan) {
  return plan.queued && (plan.in.queue->reason == kueue::kQueueUnavailable ||
                         plan.in.queue->reason == kueue::kAdmissionUnusable);
}

void SetQueued(PlanContext& plan) {
  if (!plan.queued) return;
  const kueue::Standing& queue = *plan.in.queue;
  const api::Condition* before = plan.in.job.status.Find("Scheduled");
  const bool news = before == nullptr || before->reason != queue.reason;
  // That it waits, and why it has to go, is told with condition Suspended.
  if (news && IsQueueTrouble(plan) && plan.in.job.status.Is("Suspended")) {
    plan.AddEvent(true, queue.reason, queue.message);
  }
  SetCondition(plan, "Scheduled", false, queue.reason, queue.message);
}

std::string FewerByQueue(const PlanContext& plan) {
  if (!plan.in.queue) return "";
  const kueue::Standing& queue = *plan.in.queue;
  const bool fewer = queue.stage == Stage::kUnknown ||
                     (queue.stage == Stage::kAdmitted && queue.pods < plan.in.job.WantedPods());
  return fewer ? queue.message : "";
}

}  // namespace ringmaster::planner
