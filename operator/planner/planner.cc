#include "operator/planner/planner.h"

#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/phases.h"
#include "operator/planner/snapshot_index.h"

namespace ringmaster::planner {

std::string PodName(const std::string& job, int index) {
  return fmt::format("{}-worker-{}", job, index);
}

// The template may have changed: pods of the old and the new one must not meet in one ring. A pod
// whose time to leave is over is not waited for.
bool PodsStillEnd(const Snapshot& in, DecisionDraft& out) {
  bool waits = false;
  for (const PodFacts& pod : in.pods) {
    if (pod.all_terminated || pod.proven_dead || !pod.scheduled || !pod.delete_at) continue;
    if (in.now >= *pod.delete_at) continue;
    out.LookAgainAt(*pod.delete_at);
    waits = true;
  }
  return waits;
}

Decision Plan(const Snapshot& snapshot) {
  const WithIndex index(snapshot);
  const Snapshot& in = snapshot;
  DecisionDraft out(in.now);
  out.status = in.job.status;
  JobState state{.wanted = in.job.WantedPods()};
  ObserveQueue(in, state, out);
  state.gives_all = GivesAll(in, out);
  state.suspended = in.job.Suspended() || state.queued || state.gives_all ||
                    (in.job.status.Is("Suspended") && PodsStillEnd(in, out));
  PodSets pods(in);
  WaitReasons why;
  Stall stall;
  ObserveNodes(in, state, pods, out);
  CountEnds(in, state, out);
  EvaluateOutcome(in, state, pods, out);
  CleanUp(in, state, out);
  if (!state.outcome.ended() && state.suspended) NotifyThatAllLeave(in, state, out);
  if (state.gives_all) OfferAll(in, out);
  if (!state.outcome.ended() && !state.suspended) {
    if (!GiveBack(in, state, pods, out)) {
      Size(in, state, pods, why, out);
      Admit(in, pods, why, out);
    }
    MakeView(in, state, pods, out);
    RecoverFromQuorumLoss(in, state, pods, stall, out);
    NotifySidecars(in, state, pods, out);
  }
  Release(in, state, out);
  WriteStatus(in, state, pods, why, stall, out);
  return out;
}

}  // namespace ringmaster::planner
