// Reports pods and workers that want to join the training pods but never will.
#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/phases.h"

namespace ringmaster::planner {

namespace {

// The slots of workers that came after the others and can't be given their state.
std::vector<std::uint32_t> SlotsWithoutState(const Snapshot& in, const SidecarFacts& sidecar) {
  std::vector<std::uint32_t> slots;
  for (const membership::Worker& worker : sidecar.candidate.workers) {
    const bool ranked = in.view != nullptr &&
                        in.view->FindRank(sidecar.pod_uid, worker.slot, worker.incarnation) >= 0;
    if (!worker.loads && !ranked) slots.push_back(worker.slot);
  }
  return slots;
}

// "digits-worker-2", or of a pod that has other ranks "worker 1 of digits-worker-2".
std::string WhoCantJoin(const Snapshot& in, const SidecarFacts& sidecar) {
  if (!InView(in, sidecar.pod_uid)) return sidecar.pod_name;
  const std::vector<std::uint32_t> slots = SlotsWithoutState(in, sidecar);
  return fmt::format("worker{} {} of {}", slots.size() == 1 ? "" : "s", fmt::join(slots, ", "),
                     sidecar.pod_name);
}

}  // namespace

bool LacksState(const Snapshot& in, const SidecarFacts& sidecar) {
  return sidecar.connected && !IsGone(in, sidecar.pod_uid) &&
         !SlotsWithoutState(in, sidecar).empty();
}

void SetCantJoin(const Snapshot& in, const JobState& state, DecisionDraft& out) {
  constexpr char kType[] = "CantJoin";
  constexpr char kReason[] = "NoStateRegistered";
  std::vector<std::string> names;
  const bool trains = in.view != nullptr && in.view->train && !state.outcome.ended() &&
                      !state.suspended && !state.finishing;
  for (const SidecarFacts& sidecar : in.sidecars) {
    if (trains && LacksState(in, sidecar)) names.push_back(WhoCantJoin(in, sidecar));
  }
  const bool before = out.status.Is(kType);
  if (names.empty()) {
    if (before) SetCondition(in, out, kType, false, "NobodyWaits", "nobody waits that can't join");
    return;
  }
  std::sort(names.begin(), names.end());
  const std::string message = fmt::format(
      "{} can't join those who train: the script registers no state (elastic.run and a "
      "State would let it in)",
      Names(names));
  SetCondition(in, out, kType, true, kReason, message);
  if (!before) out.AddEvent(true, kReason, message);
}

}  // namespace ringmaster::planner
