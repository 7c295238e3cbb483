// Reports pods that want to join the training pods but never will.
#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/phases.h"

namespace ringmaster::planner {

bool LacksState(const Snapshot& in, const SidecarFacts& sidecar) {
  const auto& workers = sidecar.candidate.workers;
  return sidecar.connected && !InView(in, sidecar.pod_uid) && !IsGone(in, sidecar.pod_uid) &&
         std::any_of(workers.begin(), workers.end(), [](const auto& w) { return !w.loads; });
}

void SetCantJoin(const Snapshot& in, const JobState& state, DecisionDraft& out) {
  constexpr char kType[] = "CantJoin";
  constexpr char kReason[] = "NoStateRegistered";
  std::vector<std::string> names;
  const bool trains = in.view != nullptr && in.view->train && !state.outcome.ended() &&
                      !state.suspended && !state.finishing;
  for (const SidecarFacts& sidecar : in.sidecars) {
    if (trains && LacksState(in, sidecar)) names.push_back(sidecar.pod_name);
  }
  const bool before = out.status.Is(kType);
  if (names.empty()) {
    if (before) SetCondition(in, out, kType, false, "NobodyWaits", "no pod waits that can't join");
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
