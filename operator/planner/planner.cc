#include "operator/planner/planner.h"

#include <fmt/format.h>

#include <set>
#include <string>

#include "operator/planner/phases.h"
#include "operator/planner/snapshot_index.h"
#include "operator/planner/snapshot_queries.h"

namespace ringmaster::planner {

std::string PodName(const std::string& job, int index) {
  return fmt::format("{}-worker-{}", job, index);
}

// Pods that an earlier version has made don't say what they were made from. In the same generation
// nobody has changed the job: if the digest differs, then the CRD has become another one, which
// leaves out a field that it doesn't know, or adds a default.
bool IsOutdated(const Snapshot& in) {
  if (JobHasEnded(in)) return false;
  std::set<std::string> made_from;
  bool unchanged = true;
  for (const PodFacts& pod : in.pods) {
    if (pod.made_from.empty() || pod.deleting || pod.ended()) continue;
    made_from.insert(pod.made_from);
    unchanged = unchanged && pod.made_at != 0 && pod.made_at == in.job.generation;
  }
  // In any case the pods of one ring are alike.
  if (made_from.size() > 1) return true;
  return !unchanged && made_from.size() == 1 && *made_from.begin() != in.job.spec.pods_digest;
}

bool RemovesPods(const Snapshot& in) {
  return in.job.spec.run_policy.clean_pod_policy != api::CleanPodPolicy::kNone;
}

Decision Plan(const Snapshot& snapshot) {
  const WithIndex index(snapshot);
  const Snapshot& in = snapshot;
  DecisionDraft out(in.now);
  out.status = in.job.status;
  JobState state{.wanted = in.job.WantedPods()};
  ObserveQueue(in, state, out);
  state.gives_all = GivesAll(in, out);
  state.outdated = IsOutdated(in);
  // A job that has ended keeps what it has: its times, and the pods that cleanPodPolicy leaves.
  state.suspended = !JobHasEnded(in) &&
                    (in.job.Suspended() || state.outdated || state.queued || state.gives_all ||
                     (in.job.status.Is("Suspended") && PodsStillEnd(in, out)));
  PodSets pods(in);
  WaitReasons why;
  Stall stall;
  ObserveNodes(in, state, pods, out);
  CountEnds(in, state, out);
  EvaluateOutcome(in, state, pods, out);
  CleanUp(in, state, out);
  // The pods of a job that has failed are deleted now. Those that train would look for others to
  // take over until their time is up. They can't be told to train on if the failure is not written.
  if (JobHasEnded(in) && !state.outcome.succeeded && RemovesPods(in)) {
    NotifyThatAllLeave(in, state, out);
  }
  if (!state.outcome.ended() && state.suspended) {
    NotifyThatAllLeave(in, state, out);
    out.status_first = !IsWrittenThatAllLeave(in, state);
  }
  if (state.gives_all) OfferAll(in, out);
  const bool runs_on = !state.outcome.ended() && !state.suspended;
  if (runs_on) {
    if (!GiveBack(in, state, pods, out)) {
      Size(in, state, pods, why, out);
      Admit(in, pods, why, out);
    }
    MakeView(in, state, pods, out);
    // Sidecars that hear that the job ends may go, and an operator that starts then has only the
    // status to know it from.
    if (state.finishing && in.job.status.finished_epoch == 0) out.status_first = true;
    RecoverFromQuorumLoss(in, state, pods, stall, out);
    NotifySidecars(in, state, pods, out);
  }
  DropRequests(in, pods, out, runs_on);
  Release(in, state, out);
  WriteStatus(in, state, pods, why, stall, out);
  return out;
}

}  // namespace ringmaster::planner
