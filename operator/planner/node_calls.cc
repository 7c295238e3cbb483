// Part of phase 5: pods that stand Pending although there is no room for them, so that an
// autoscaler makes nodes; and the annotations that keep an autoscaler from removing a pod's node
// before the job trains.
#include <fmt/format.h>

#include <algorithm>

#include "operator/api/labels.h"
#include "operator/planner/plan_context.h"

namespace ringmaster::planner {
namespace {

// Each removal costs a call, and none is urgent.
constexpr std::size_t kLoweredInOneLook = 50;

// Since when the newest of the pods that wait for nodes may start; nullopt if none waits.
std::optional<Time> CallsSince(const PlanContext& plan) {
  std::optional<Time> since;
  for (const PodFacts* pod : plan.active) {
    if (!pod->calls_for_nodes || pod->gated || pod->scheduled) continue;
    since = std::max(since.value_or(Time()), pod->admitted_at.value_or(pod->created));
  }
  return since;
}

std::size_t CountCallers(const PlanContext& plan) {
  return static_cast<std::size_t>(std::count_if(
      plan.active.begin(), plan.active.end(),
      [](const PodFacts* pod) { return pod->calls_for_nodes && !pod->gated && !pod->scheduled; }));
}

}  // namespace

void CallForNodes(PlanContext& plan, const std::vector<const PodFacts*>& gated, int least) {
  if (!plan.in.gang_fit->calls_for_nodes || static_cast<int>(gated.size()) < least) return;
  for (int i = 0; i < least; ++i) {
    plan.out.admits.push_back({.name = gated[i]->name,
                               .uid = gated[i]->uid,
                               .domain = plan.in.gang_fit->domain,
                               .calls_for_nodes = true});
  }
  plan.for_nodes =
      fmt::format("{} stand{} Pending from now on, so that an autoscaler makes nodes for {}",
                  Plural(static_cast<std::size_t>(least), "pod"), least == 1 ? "s" : "",
                  least == 1 ? "it" : "them");
}

void ObserveNodeCalls(PlanContext& plan, bool has_members) {
  const auto since = CallsSince(plan);
  if (!since) return;
  plan.out.calls_for_nodes = !has_members;
  const std::size_t n = CountCallers(plan);
  plan.for_nodes = fmt::format(
      "{} stand{} Pending since {}, so that an autoscaler makes nodes for {}", Plural(n, "pod"),
      n == 1 ? "s" : "", api::FormatTime(*since), n == 1 ? "it" : "them");
  if (has_members || !plan.in.nodes_within) return;
  plan.for_nodes += fmt::format("; where these have not come by {} the job gives back what it has",
                                api::FormatTime(*since + *plan.in.nodes_within));
}

void SetShields(PlanContext& plan, bool has_members) {
  for (PodCreate& create : plan.out.creates) create.shielded = !has_members;
  const auto trains = [&](const PodFacts* pod) {
    const SidecarFacts* sidecar = FindSidecar(plan.in, pod->uid);
    return InView(plan.in, pod->uid) && sidecar != nullptr && sidecar->able;
  };
  // When the job trains, the annotations are also removed from pods that may never join it.
  const bool started = std::any_of(plan.active.begin(), plan.active.end(), trains);
  std::size_t lowered = 0;
  for (const PodFacts* pod : plan.active) {
    const bool may_go = InView(plan.in, pod->uid) ? trains(pod) : started;
    if (pod->shields.empty() || !may_go) continue;
    if (lowered++ == kLoweredInOneLook) return plan.LookAgainAt(plan.in.now);
    for (const std::string& key : pod->shields)
      plan.out.annotations.push_back({pod->name, key, ""});
    plan.out.annotations.push_back({pod->name, api::kShieldAnnotation, ""});
  }
}

}  // namespace ringmaster::planner
