// Part of phase 5: pods that stand Pending although there is no room for them, so that an
// autoscaler makes nodes; and the annotations that keep an autoscaler from removing a pod's node
// before the job trains.
#include <fmt/format.h>

#include <algorithm>

#include "operator/api/labels.h"
#include "operator/planner/phases.h"

namespace ringmaster::planner {
namespace {

// Each removal costs a call, and none is urgent.
constexpr std::size_t kLoweredInOneLook = 50;

// When the newest of the pods that wait for nodes was created; nullopt if none waits.
std::optional<Time> CallsSince(const PodSets& pods) {
  std::optional<Time> since;
  for (const PodFacts* pod : pods.active) {
    if (!pod->calls_for_nodes || pod->scheduled) continue;
    since = std::max(since.value_or(Time()), pod->created);
  }
  return since;
}

std::size_t CountCallers(const PodSets& pods) {
  return static_cast<std::size_t>(
      std::count_if(pods.active.begin(), pods.active.end(),
                    [](const PodFacts* pod) { return pod->calls_for_nodes && !pod->scheduled; }));
}

}  // namespace

int CallForNodes(const Snapshot& in, WaitReasons& why, DecisionDraft& out, int least) {
  if (!in.gang_fit->calls_for_nodes) return 0;
  for (int i = 0; i < least; ++i) {
    PodCreate& create = out.creates[static_cast<std::size_t>(i)];
    create.domain = in.gang_fit->domain;
    create.calls_for_nodes = true;
  }
  why.for_nodes =
      fmt::format("{} stand{} Pending from now on, so that an autoscaler makes nodes for {}",
                  Plural(static_cast<std::size_t>(least), "pod"), least == 1 ? "s" : "",
                  least == 1 ? "it" : "them");
  return least;
}

void ObserveNodeCalls(const Snapshot& in, const PodSets& pods, WaitReasons& why, DecisionDraft& out,
                      bool has_members) {
  const auto since = CallsSince(pods);
  if (!since) return;
  out.calls_for_nodes = !has_members;
  const std::size_t n = CountCallers(pods);
  why.for_nodes = fmt::format(
      "{} stand{} Pending since {}, so that an autoscaler makes nodes for {}", Plural(n, "pod"),
      n == 1 ? "s" : "", api::FormatTime(*since), n == 1 ? "it" : "them");
  if (has_members || !in.nodes_within) return;
  why.for_nodes += fmt::format("; where these have not come by {} the job gives back what it has",
                               api::FormatTime(*since + *in.nodes_within));
}

void SetShields(const Snapshot& in, const PodSets& pods, DecisionDraft& out, bool has_members) {
  for (PodCreate& create : out.creates) create.shielded = !has_members;
  const auto trains = [&](const PodFacts* pod) {
    const SidecarFacts* sidecar = FindSidecar(in, pod->uid);
    return InView(in, pod->uid) && sidecar != nullptr && sidecar->able;
  };
  // Once the job trains, pods outside its view lose their shields too: they may never join.
  const bool started = std::any_of(pods.active.begin(), pods.active.end(), trains);
  std::size_t lowered = 0;
  for (const PodFacts* pod : pods.active) {
    const bool may_go = InView(in, pod->uid) ? trains(pod) : started;
    if (pod->shields.empty() || !may_go) continue;
    if (lowered++ == kLoweredInOneLook) return out.LookAgainAt(in.now);
    for (const std::string& key : pod->shields) out.annotations.push_back({pod->name, key, ""});
    out.annotations.push_back({pod->name, api::kShieldAnnotation, ""});
  }
}

}  // namespace ringmaster::planner
