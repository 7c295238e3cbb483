// Reports pods that should leave or join but wait for the end of a step that does not come.
#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/plan_context.h"

namespace ringmaster::planner {
namespace {

// A step may last this long before anything is reported.
constexpr std::chrono::seconds kLongStep{10};

// Since when a planned change has waited for workers of the view, according to its sidecars.
std::optional<Time> AwaitedSince(const Snapshot& in) {
  std::optional<Time> since;
  for (const SidecarFacts& sidecar : in.sidecars) {
    if (!sidecar.connected || !sidecar.step_awaited_since) continue;
    if (sidecar.epoch != membership::EpochOf(in.view)) continue;  // it belongs to another view
    since = std::min(since.value_or(*sidecar.step_awaited_since), *sidecar.step_awaited_since);
  }
  return since;
}

std::string NoStepSince(Time since) { return "no step has ended since " + api::FormatTime(since); }

std::vector<std::string> Leavers(const PlanContext& plan) {
  std::vector<std::string> names;
  for (const PodFacts* pod : plan.leaving) {
    const bool told = pod->drain_since || pod->deleting;
    if (told && InView(plan.in, pod->uid)) names.push_back(pod->name);
  }
  return names;
}

// Pods outside the view that are ready to join it, and members with a worker that is.
std::vector<std::string> Joiners(const PlanContext& plan) {
  std::vector<std::string> names;
  for (const SidecarFacts& sidecar : plan.in.sidecars) {
    const PodFacts* pod = FindPod(plan.in, sidecar.pod_uid);
    if (!sidecar.connected || !sidecar.ready || LacksState(plan.in, sidecar)) continue;
    if (pod == nullptr || pod->leaving() || pod->ended()) continue;
    const auto& workers = sidecar.candidate.workers;
    const bool waits = std::any_of(workers.begin(), workers.end(), [&](const auto& worker) {
      return worker.ready && plan.in.view->FindRank(pod->uid, worker.slot, worker.incarnation) < 0;
    });
    if (waits) names.push_back(sidecar.pod_name);
  }
  std::sort(names.begin(), names.end(), membership::NaturalLess);
  return names;
}

// "the drain of a and the join of b wait"; empty if no known pod waits.
std::string WhoWaits(const PlanContext& plan) {
  const auto leavers = Leavers(plan), joiners = Joiners(plan);
  std::string text;
  if (!leavers.empty()) text += "the drain of " + Names(leavers);
  if (!leavers.empty() && !joiners.empty()) text += " and ";
  if (!joiners.empty()) text += "the join of " + Names(joiners);
  if (text.empty()) return "";
  return text + (leavers.empty() || joiners.empty() ? " waits" : " wait");
}

// Empty if nothing waits, or not for long.
std::string Describe(PlanContext& plan) {
  const bool trains = plan.in.view != nullptr && plan.in.view->train && !plan.outcome.ended() &&
                      !plan.suspended && !plan.finishing;
  const std::optional<Time> since = trains ? AwaitedSince(plan.in) : std::nullopt;
  const std::string who = since ? WhoWaits(plan) : "";
  if (who.empty()) return "";
  if (plan.in.now < *since + kLongStep) {
    plan.LookAgainAt(*since + kLongStep);
    return "";
  }
  return fmt::format("{}: {} for the next state.commit() or optimizer.step()", NoStepSince(*since),
                     who);
}

}  // namespace

void SetNoStepEnds(PlanContext& plan) {
  const std::string message = Describe(plan);
  const bool before = plan.out.status.Is(kNoStepEnds);
  if (message.empty()) {
    if (before) {
      SetCondition(plan, kNoStepEnds, false, "NothingWaits", "nothing waits for a step's end");
    }
    return;
  }
  SetCondition(plan, kNoStepEnds, true, kNoStepEnds, message);
  if (!before) plan.AddEvent(true, kNoStepEnds, message);
}

std::string WhyNotLeft(const PlanContext& plan, const PodFacts& pod) {
  std::vector<std::string> causes = DescribeStalls(plan.in);
  if (const auto since = AwaitedSince(plan.in)) causes.insert(causes.begin(), NoStepSince(*since));
  if (!causes.empty()) return fmt::format("{}", fmt::join(causes, "; "));
  const SidecarFacts* sidecar = FindSidecar(plan.in, pod.uid);
  return sidecar != nullptr && sidecar->connected
             ? "its sidecar has not said why (does it stand still?)"
             : "its sidecar has no connection to the operator";
}

}  // namespace ringmaster::planner
