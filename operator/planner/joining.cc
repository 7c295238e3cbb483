// Reports pods that want to join the training pods but never will.
#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/plan_context.h"

namespace ringmaster::planner {

bool LacksState(const Snapshot& in, const SidecarFacts& sidecar) {
  const auto& workers = sidecar.candidate.workers;
  return sidecar.connected && !InView(in, sidecar.pod_uid) && !IsGone(in, sidecar.pod_uid) &&
         std::any_of(workers.begin(), workers.end(), [](const auto& w) { return !w.loads; });
}

void SetCantJoin(PlanContext& plan) {
  constexpr char kType[] = "CantJoin";
  constexpr char kReason[] = "NoStateRegistered";
  std::vector<std::string> names;
  const bool trains = plan.in.view != nullptr && plan.in.view->train && !plan.outcome.ended() &&
                      !plan.suspended && !plan.finishing;
  for (const SidecarFacts& sidecar : plan.in.sidecars) {
    if (trains && LacksState(plan.in, sidecar)) names.push_back(sidecar.pod_name);
  }
  const bool before = plan.out.status.Is(kType);
  if (names.empty()) {
    if (before) SetCondition(plan, kType, false, "NobodyWaits", "no pod waits that can't join");
    return;
  }
  std::sort(names.begin(), names.end());
  const std::string message = fmt::format(
      "{} can't join those who train: the script registers no state (elastic.run and a "
      "State would let it in)",
      Names(names));
  SetCondition(plan, kType, true, kReason, message);
  if (!before) plan.AddEvent(true, kReason, message);
}

}  // namespace ringmaster::planner
