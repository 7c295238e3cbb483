#include "operator/planner/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "operator/planner/phases.h"
#include "operator/planner/snapshot_index.h"
#include "operator/planner/snapshot_queries.h"

namespace ringmaster::planner {

namespace {

// The members of the newest view were told that all leave. Otherwise pods that came afterwards have
// made that view, and the status could not be written since: only the new lineage is claimed there,
// with number 0, before it has a view.
bool WasKnownWhenAllLeft(const Snapshot& in) {
  const std::uint64_t known = in.job.status.epoch;
  return membership::EpochNumber(known) != 0 &&
         membership::EpochLineage(in.view->epoch) <= membership::EpochLineage(known);
}

// When it was written that the job is suspended: pods that were there then were told to leave.
std::optional<Time> SuspendedSince(const Snapshot& in) {
  if (!in.job.status.Is("Suspended")) return std::nullopt;
  return api::ParseTime(in.job.status.Find("Suspended")->last_transition_time);
}

// All ranks had agreed to end: a pod that has ended has done its work.
bool AllHadAgreed(const Snapshot& in) {
  return std::any_of(in.sidecars.begin(), in.sidecars.end(),
                     [](const SidecarFacts& sidecar) { return sidecar.finished_epoch != 0; });
}

}  // namespace

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

// The template may have changed: pods of the old and the new one must not meet in one ring. A pod
// whose time to leave is over is not waited for.
bool PodsStillEnd(const Snapshot& in, DecisionDraft& out) {
  bool waits = false;
  const bool told = in.view != nullptr && WasKnownWhenAllLeft(in), agreed = AllHadAgreed(in);
  const std::optional<Time> suspended = SuspendedSince(in);
  for (const PodFacts& pod : in.pods) {
    // It leaves because it was told so, and is deleted next. If it has left and could not be
    // deleted yet, it has ended with 0, which does not mean that its ranks have done all.
    const bool leaves = (told && InView(in, pod.uid)) || (suspended && pod.created <= *suspended);
    waits = waits || (leaves && !pod.deleting && !(pod.ended() && agreed));
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
  state.outdated = IsOutdated(in);
  state.suspended = in.job.Suspended() || state.outdated || state.queued || state.gives_all ||
                    (!JobHasEnded(in) && in.job.status.Is("Suspended") && PodsStillEnd(in, out));
  PodSets pods(in);
  WaitReasons why;
  Stall stall;
  ObserveNodes(in, state, pods, out);
  CountEnds(in, state, out);
  EvaluateOutcome(in, state, pods, out);
  CleanUp(in, state, out);
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
    RecoverFromQuorumLoss(in, state, pods, stall, out);
    NotifySidecars(in, state, pods, out);
  }
  DropRequests(in, pods, out, runs_on);
  Release(in, state, out);
  WriteStatus(in, state, pods, why, stall, out);
  return out;
}

}  // namespace ringmaster::planner
