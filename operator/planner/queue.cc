// Jobs in a Kueue queue: the admission bounds the size, and without an admission there are no pods.
// They leave as those of a suspended job do.
#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/phases.h"

namespace ringmaster::planner {
namespace {

using kueue::Stage;

// All ranks have agreed to end, according to the status or to the sidecar of a pod that was not
// told to go.
bool HaveAgreedToEnd(const Snapshot& in) {
  return in.job.status.finished_epoch != 0 ||
         std::any_of(in.sidecars.begin(), in.sidecars.end(), [&in](const SidecarFacts& sidecar) {
           const PodFacts* pod = FindPod(in, sidecar.pod_uid);
           return sidecar.finished_epoch != 0 && pod != nullptr && !pod->deleting;
         });
}

// Called for an ended pod: its exit still has to be evaluated, or decides about the job.
bool HasToBeEvaluated(const Snapshot& in, const PodFacts& pod) {
  if (!IsAccounted(in, pod.uid)) return true;
  return pod.phase == PodPhase::kSucceeded && (in.view == nullptr || InView(in, pod.uid));
}

// After an eviction the job gets no more time to end than its pods would get.
bool IsLetEnd(const Snapshot& in, DecisionDraft& out) {
  if (!EndComesFirst(in)) return false;
  std::optional<int> grace;
  for (const PodFacts& pod : in.pods) {
    if (!pod.ended()) grace = std::max(grace.value_or(0), pod.grace_seconds);
  }
  if (!grace || !in.queue->evicted_at) return true;
  const Time end = *in.queue->evicted_at + std::chrono::seconds(*grace);
  if (in.now >= end) return false;
  out.LookAgainAt(end);
  return true;
}

}  // namespace

bool EndComesFirst(const Snapshot& in) {
  // Pods that have been told to go say nothing about the job's end.
  if (JobHasEnded(in) || in.job.status.Is("Suspended")) return false;
  const bool agreed = HaveAgreedToEnd(in);
  const auto is_alive = [](const PodFacts& pod) { return !pod.ended(); };
  if (std::any_of(in.pods.begin(), in.pods.end(), is_alive)) return agreed;
  return std::any_of(in.pods.begin(), in.pods.end(), [&](const PodFacts& pod) {
    return HasToBeEvaluated(in, pod) && (agreed || !pod.leaving());
  });
}

void ObserveQueue(const Snapshot& in, JobState& state, DecisionDraft& out) {
  if (!in.queue || JobHasEnded(in) || in.job.Suspended()) return;
  if (in.queue->stage != Stage::kAdmitted && IsLetEnd(in, out)) return;
  switch (in.queue->stage) {
    case Stage::kAdmitted:
      state.wanted = in.job.WantedPodsOf(in.queue->pods);
      return;
    case Stage::kUnknown:
      // The job may train: an operator that has just started does not know its Workload yet.
      state.queued = std::all_of(in.pods.begin(), in.pods.end(),
                                 [](const PodFacts& pod) { return pod.deleting; });
      return;
    case Stage::kWaits:
    case Stage::kLeaves:
      state.queued = true;
      return;
  }
}

bool IsQueueTrouble(const Snapshot& in, const JobState& state) {
  return state.queued && (in.queue->reason == kueue::kQueueUnavailable ||
                          in.queue->reason == kueue::kAdmissionUnusable);
}

void SetQueued(const Snapshot& in, const JobState& state, DecisionDraft& out) {
  if (!state.queued) return;
  const kueue::QueueState& queue = *in.queue;
  const api::Condition* before = in.job.status.Find("Scheduled");
  const bool news = before == nullptr || before->reason != queue.reason;
  // Condition Suspended says that the job waits and why its pods leave, so the event belongs to it.
  if (news && IsQueueTrouble(in, state) && in.job.status.Is("Suspended")) {
    out.AddEvent(true, queue.reason, queue.message);
  }
  SetCondition(in, out, "Scheduled", false, queue.reason, queue.message);
}

std::string FewerByQueue(const Snapshot& in) {
  if (!in.queue) return "";
  const kueue::QueueState& queue = *in.queue;
  const bool fewer = queue.stage == Stage::kUnknown ||
                     (queue.stage == Stage::kAdmitted && queue.pods < in.job.WantedPods());
  return fewer ? queue.message : "";
}

}  // namespace ringmaster::planner
