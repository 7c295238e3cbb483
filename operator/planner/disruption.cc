#include "operator/planner/disruption.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::planner {
namespace {

constexpr char kUnreachableTaint[] = "node.kubernetes.io/unreachable";
// The taint by which the scheduler sees a cordon.
constexpr char kCordonTaint[] = "node.kubernetes.io/unschedulable";

bool HasTaint(const NodeFacts& node, const std::string& key) {
  return std::any_of(node.taints.begin(), node.taints.end(),
                     [&](const TaintFacts& taint) { return taint.key == key; });
}

}  // namespace

const std::vector<std::string>& DefaultDisruptionTaints() {
  static const std::vector<std::string> kKeys = {
      "ToBeDeletedByClusterAutoscaler",
      "karpenter.sh/disrupted",
      "karpenter.sh/disruption",
      "aws-node-termination-handler/spot-itn",
      "aws-node-termination-handler/scheduled-maintenance",
      "aws-node-termination-handler/asg-lifecycle-termination",
      "aws-node-termination-handler/rebalance-recommendation",
      "cloud.google.com/impending-node-termination",
      "remediator.kubernetes.azure.com/unschedulable",
  };
  return kKeys;
}

std::optional<Warning> WarningOf(const NodeFacts& node,
                                 const std::vector<std::string>& taint_keys) {
  for (const TaintFacts& taint : node.taints) {
    // A mere preference keeps no pod off, so it announces nothing yet.
    if (taint.effect == "PreferNoSchedule") continue;
    if (std::find(taint_keys.begin(), taint_keys.end(), taint.key) == taint_keys.end()) continue;
    return Warning{"NodeTainted:" + taint.key,
                   fmt::format("node {} is tainted {}: it goes soon", node.name, taint.key), true,
                   taint};
  }
  if (!node.unschedulable) return std::nullopt;
  return Warning{kCordoned,
                 fmt::format("node {} is cordoned: a drain is expected", node.name),
                 false,
                 {kCordonTaint, "NoSchedule", ""}};
}

bool IsUnreachable(const NodeFacts& node) { return HasTaint(node, kUnreachableTaint); }

}  // namespace ringmaster::planner
