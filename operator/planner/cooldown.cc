// Cooldown of nodes (failurePolicy.nodeCooldownSeconds): for this time new pods avoid a node that
// has lost a pod, on which a GPU failed, or on which workers were repeatedly killed by signals. It
// is a preference: if no other node fits, the pod may use this one. docs/disruptions.md says what
// counts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "operator/api/exit_code.h"
#include "operator/planner/phases.h"

namespace ringmaster::planner {
namespace {

// One death by a signal may have any cause; this many on one node within the cooldown are a
// pattern.
constexpr int kDeathsToBlame = 3;

// According to the kubelet or the control plane, the node could not keep the pod.
bool IsNodesFault(const std::string& reason) {
  constexpr std::array<std::string_view, 8> kReasons = {
      "Evicted",    "NodeLost",        "NodeShutdown",         "UnexpectedAdmissionError",
      "Terminated", "DeletionByPodGC", "TerminationByKubelet", "DeletionByTaintManager"};
  return std::find(kReasons.begin(), kReasons.end(), reason) != kReasons.end();
}

std::chrono::seconds Cooldown(const Snapshot& in) {
  return std::chrono::seconds(in.job.spec.failure_policy.node_cooldown_seconds);
}

bool IsAvoided(const api::TroubledNode& node, Time now) {
  const auto until = api::ParseTime(node.avoid_until);
  return until && *until > now;
}

// Forgets failures that are older than the cooldown.
void Forget(const Snapshot& in, DecisionDraft& out) {
  std::erase_if(out.status.troubled_nodes, [&](const api::TroubledNode& node) {
    const auto last = api::ParseTime(node.last_failure);
    return !last || *last + Cooldown(in) <= in.now;
  });
}

void Blame(const Snapshot& in, DecisionDraft& out, const std::string& name,
           const std::string& reason, bool at_once) {
  if (name.empty() || Cooldown(in).count() == 0) return;
  Forget(in, out);
  auto& nodes = out.status.troubled_nodes;
  auto node = std::find_if(nodes.begin(), nodes.end(),
                           [&](const api::TroubledNode& n) { return n.name == name; });
  if (node == nodes.end()) node = nodes.insert(nodes.end(), api::TroubledNode{.name = name});
  ++node->failures;
  node->last_failure = api::FormatTime(in.now);
  node->reason = reason;
  if (!at_once && node->failures < kDeathsToBlame) return;
  const bool before = IsAvoided(*node, in.now);
  node->avoid_until = api::FormatTime(in.now + Cooldown(in));
  if (before) return;
  out.AddEvent(
      true, "NodeCooldown",
      fmt::format("new pods avoid node {} for {} s: {}", name, Cooldown(in).count(),
                  at_once ? reason : fmt::format("{} workers died on it", node->failures)));
}

// What lasts for several reconciles is one failure.
void BlameOnce(const Snapshot& in, DecisionDraft& out, const PodFacts& pod, const char* reason) {
  for (const api::TroubledNode& node : out.status.troubled_nodes) {
    if (node.name == pod.node && IsAvoided(node, in.now)) return;
  }
  Blame(in, out, pod.node, reason, true);
}

}  // namespace

void BlameForPod(const Snapshot& in, DecisionDraft& out, const PodFacts& pod) {
  if (IsNodesFault(pod.reason) || pod.rejected) return Blame(in, out, pod.node, pod.reason, true);
  if (!pod.leaving() && pod.exit_code && api::SignalOfExit(*pod.exit_code) && pod.reason.empty()) {
    Blame(in, out, pod.node, "WorkerDied", false);
  }
}

void BlameForExit(const Snapshot& in, DecisionDraft& out, const job::WorkerExit& exit) {
  if (!api::SignalOfExit(exit.exit_code)) return;
  const auto pod = std::find_if(in.pods.begin(), in.pods.end(),
                                [&](const PodFacts& p) { return p.name == exit.pod_name; });
  if (pod != in.pods.end()) Blame(in, out, pod->node, "WorkerDied", false);
}

void BlameForGpu(const Snapshot& in, DecisionDraft& out, const PodFacts& pod) {
  BlameOnce(in, out, pod, kGpuUnhealthy);
}

void BlameForSilence(const Snapshot& in, DecisionDraft& out, const PodFacts& pod) {
  BlameOnce(in, out, pod, "NodeUnreachable");
}

std::vector<std::string> NodesToAvoid(const Snapshot& in, DecisionDraft& out) {
  Forget(in, out);
  std::vector<std::string> names;
  for (const api::TroubledNode& node : out.status.troubled_nodes) {
    if (IsAvoided(node, in.now)) names.push_back(node.name);
  }
  return names;
}

}  // namespace ringmaster::planner
