// All pods of a job leave: it is suspended, or makes way for another one.
#include <algorithm>
#include <optional>

#include "operator/api/time.h"
#include "operator/planner/phases.h"
#include "operator/planner/snapshot_queries.h"
#include "operator/planner/timings.h"

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

// The condition that says that all pods leave; null if none does yet.
const api::Condition* WhereItIsWritten(const Snapshot& in, const JobState& state) {
  const api::Condition* at = in.job.status.Find(state.gives_all ? kPreempted : "Suspended");
  const bool says = at != nullptr && at->status && (!state.gives_all || at->reason == kJobLeaves);
  return says ? at : nullptr;
}

}  // namespace

bool IsWrittenThatAllLeave(const Snapshot& in, const JobState& state) {
  return WhereItIsWritten(in, state) != nullptr;
}

bool MembersKnowThatAllLeave(const Snapshot& in, const JobState& state, DecisionDraft& out) {
  const api::Condition* written = WhereItIsWritten(in, state);
  if (written == nullptr) return false;
  // Sidecars that lost their operator when it had just been written come to the next one.
  const Time since = std::max(
      api::ParseTime(written->last_transition_time).value_or(in.now - kAllHear), HeardAllBy(in));
  if (in.now >= since + kAllHear) return true;
  const bool all_know = std::all_of(in.pods.begin(), in.pods.end(), [&](const PodFacts& pod) {
    if (pod.ended() || pod.deleting || !InView(in, pod.uid)) return true;
    const SidecarFacts* sidecar = FindSidecar(in, pod.uid);
    return sidecar != nullptr && sidecar->knows_that_all_leave;
  });
  if (!all_know) out.LookAgainAt(since + kAllHear);
  return all_know;
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

}  // namespace ringmaster::planner
