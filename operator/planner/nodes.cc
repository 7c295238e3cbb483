// Phase 0: what the nodes say about the pods on them, and the pods about their GPUs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "operator/api/labels.h"
#include "operator/planner/phases.h"
#include "operator/scheduler/node_rules.h"

namespace ringmaster::planner {
namespace {

void Warn(const Snapshot& in, PodSets& pods, DecisionDraft& out, const PodFacts& pod,
          Warning warning) {
  if (pod.warned != warning.reason || !pod.warned_since) {
    out.annotations.push_back({pod.name, api::kWarnedAnnotation, warning.reason});
    out.annotations.push_back({pod.name, api::kWarnedSinceAnnotation, api::FormatTime(in.now)});
    out.AddEvent(false, "DisruptionAnnounced",
                 fmt::format("{}; pod {} leaves when another has taken its place", warning.message,
                             pod.name),
                 pod.name);
  }
  pods.warned.emplace(pod.uid, std::move(warning));
}

void Unwarn(DecisionDraft& out, const PodFacts& pod) {
  if (pod.warned.empty()) return;
  out.annotations.push_back({pod.name, api::kWarnedAnnotation, ""});
  out.annotations.push_back({pod.name, api::kWarnedSinceAnnotation, ""});
  out.AddEvent(false, "DisruptionOver",
               fmt::format("node {} stays: pod {} stays too", pod.node, pod.name), pod.name);
}

// The node's end was already announced when the pod was created, and the pod runs there all the
// same: it can run nowhere else, or a user wants it there. A replacement would be in the same
// situation.
bool CameInSpiteOf(const PodFacts& pod, const Warning& warning) {
  const auto known = pod.announced.find(pod.node);
  return known != pod.announced.end() && known->second == warning.reason;
}

// From now on an announced end of the pod's node counts again.
void ForgetAnnounced(DecisionDraft& out, const PodFacts& pod) {
  if (pod.announced.count(pod.node) == 0) return;
  out.annotations.push_back({pod.name, api::kAnnouncedAnnotation, ""});
}

// The node that the template itself names, bypassing the scheduler; empty: none.
std::string FixedNode(const nlohmann::json& pod_template) {
  const auto name = "/spec/nodeName"_json_pointer;
  if (!pod_template.contains(name) || !pod_template.at(name).is_string()) return "";
  return pod_template.at(name).get<std::string>();
}

void ObserveAnnounced(const Snapshot& in, PodSets& pods, DecisionDraft& out, const PodFacts& pod,
                      const NodeFacts& node) {
  auto warning = WarningOf(node, in.disruption_taints);
  if (!warning) ForgetAnnounced(out, pod);
  if (warning && !CameInSpiteOf(pod, *warning)) {
    Warn(in, pods, out, pod, std::move(*warning));
  } else {
    Unwarn(out, pod);
  }
}

bool IsAway(const Snapshot& in, const PodFacts& pod, const NodeFacts& node) {
  if (!IsUnreachable(node) || InView(in, pod.uid)) return false;
  const SidecarFacts* sidecar = FindSidecar(in, pod.uid);
  return sidecar == nullptr || !sidecar->connected;
}

}  // namespace

void ObserveNodes(const Snapshot& in, const JobState& state, PodSets& pods, DecisionDraft& out) {
  if (state.suspended || JobHasEnded(in)) return;
  for (const PodFacts* pod : pods.active) {
    const bool gpu_fails = ObserveGpus(in, pods, out, *pod);
    const NodeFacts* node = FindNode(in, pod->node);
    if (node == nullptr) continue;
    if (!gpu_fails) ObserveAnnounced(in, pods, out, *pod, *node);
    if (!IsAway(in, *pod, *node)) continue;
    pods.away.insert(pod->uid);
    BlameForSilence(in, out, *pod);
  }
}

void RecordAnnouncedEnds(const Snapshot& in, PodCreate& create) {
  const nlohmann::json& pod = in.job.spec.worker.pod_template;
  const std::string fixed = FixedNode(pod);
  for (const NodeFacts& node : in.nodes) {
    const auto warning = WarningOf(node, in.disruption_taints);
    if (!warning) continue;
    const TaintFacts& taint = warning->taint;
    const bool open = fixed.empty()
                          ? scheduler::Tolerates(pod, {taint.key, taint.value, taint.effect})
                          : fixed == node.name;
    if (!open) continue;
    create.announced[node.name] = warning->reason;
    // A pod that names its node and has a rule against it would be refused by the kubelet.
    if (fixed.empty()) (warning->ends ? create.keep_off : create.avoid).push_back(node.name);
  }
}

std::string NodeToReturnTo(const Snapshot& in, const PodFacts& pod) {
  if (pod.scheduled) return "";
  for (const auto& [name, reason] : pod.announced) {
    const NodeFacts* node = FindNode(in, name);
    if (reason == kCordoned || node == nullptr) continue;  // only avoided; or gone
    const auto warning = WarningOf(*node, in.disruption_taints);
    if (!warning || !warning->ends) return name;
  }
  return "";
}

}  // namespace ringmaster::planner
