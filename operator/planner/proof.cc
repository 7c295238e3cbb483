#include "operator/planner/proof.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::planner {
namespace {

// The machine with the name of the pod's node is the one on which the pod's sidecar ran, and it has
// booted since. Another machine with the same name proves nothing about the first.
bool Rebooted(const PodFacts& pod, const NodeFacts& node) {
  const std::size_t space = pod.boot.find(' ');
  if (space == std::string::npos || space == 0 || node.boot_id.empty()) return false;
  return pod.boot.substr(space + 1) == node.machine && pod.boot.substr(0, space) != node.boot_id;
}

// Interprets the taint as the API's own pod garbage collector does: a node that reports Ready is in
// service, whatever its taints say.
bool OutOfService(const NodeFacts& node) {
  return !node.ready &&
         std::any_of(node.taints.begin(), node.taints.end(),
                     [](const TaintFacts& taint) { return taint.key == kOutOfServiceTaint; });
}

}  // namespace

std::optional<std::string> ProofOfDeath(const PodFacts& pod, const NodeEvidence& evidence) {
  if (pod.all_terminated) return "the kubelet says that every container has terminated";
  if (!pod.vouched.empty()) return pod.vouched;
  // Before a kubelet has accepted the pod it may still be started, whatever has become of its node.
  if (!pod.accepted) return std::nullopt;
  if (evidence.instance_gone) {
    return fmt::format("the instance of node {} no longer exists", pod.node);
  }
  if (evidence.node == nullptr || evidence.node->name != pod.node) return std::nullopt;
  if (Rebooted(pod, *evidence.node)) {
    return fmt::format("node {} has rebooted since the pod started", pod.node);
  }
  if (OutOfService(*evidence.node)) {
    return fmt::format("node {} is tainted {}", pod.node, kOutOfServiceTaint);
  }
  return std::nullopt;
}

}  // namespace ringmaster::planner
