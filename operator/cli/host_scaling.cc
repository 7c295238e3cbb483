#include "operator/cli/host_scaling.h"

#include <algorithm>
#include <numeric>

namespace ringmaster::cli {
namespace {

// The pods that stay on a node, by descending index.
std::vector<const PodSeen*> StayingOn(const RunNodes& seen, const std::string& node) {
  std::vector<const PodSeen*> staying;
  for (const PodSeen& pod : seen.pods)
    if (pod.node == node && pod.stays) staying.push_back(&pod);
  std::sort(staying.begin(), staying.end(),
            [](const PodSeen* a, const PodSeen* b) { return a->index > b->index; });
  return staying;
}

// If there are fewer slots than the job needs workers, the minimum number of workers stays
// nevertheless.
std::vector<std::string> Surplus(const NodeSlots& slots, const RunNodes& seen, int min_workers) {
  int may_leave = 0;
  for (const auto& [node, offered] : slots.offered)
    may_leave += static_cast<int>(StayingOn(seen, node).size());
  if (slots.Sum() < min_workers) may_leave -= min_workers;
  std::vector<std::string> drains;
  for (const auto& [node, offered] : slots.offered) {
    const auto pods = StayingOn(seen, node);
    const int surplus = std::min(static_cast<int>(pods.size()) - offered, may_leave);
    for (int i = 0; i < surplus; ++i, --may_leave)
      drains.push_back(pods[static_cast<std::size_t>(i)]->name);
  }
  return drains;
}

// Must be true before the job is made smaller: otherwise the operator would choose the pods with
// the highest indexes to leave, wherever they are.
bool OperatorKnowsWhoLeaves(const NodeSlots& slots, const RunNodes& seen) {
  return std::all_of(seen.pods.begin(), seen.pods.end(), [&](const PodSeen& pod) {
    if (pod.drain_asked && !pod.drain_known) return false;
    return !pod.stays || pod.warned || slots.closed.count(pod.node) == 0;
  });
}

}  // namespace

int NodeSlots::Sum() const {
  return std::accumulate(offered.begin(), offered.end(), 0,
                         [](int sum, const auto& node) { return sum + node.second; });
}

ScaleStep PlanScale(const NodeSlots& slots, const RunNodes& seen, const WorkerBounds& bounds,
                    int workers) {
  const int wanted = std::clamp(slots.Sum(), bounds.min, bounds.max);
  ScaleStep step{.drains = Surplus(slots, seen, bounds.min)};
  if (wanted == workers) return step;
  const bool shrinks = wanted < workers;
  if (!shrinks || (step.drains.empty() && OperatorKnowsWhoLeaves(slots, seen)))
    step.replicas = wanted;
  return step;
}

}  // namespace ringmaster::cli
