// Phase 0: what the nodes say about the pods on them.
#include <fmt/format.h>

#include "operator/planner/work.h"

namespace ringmaster::planner {
namespace {

void Warn(Work& work, const PodFacts& pod, Warning warning) {
  if (pod.warned != warning.reason || !pod.warned_since) {
    work.out.annotations.push_back({pod.name, kWarnedAnnotation, warning.reason});
    work.out.annotations.push_back(
        {pod.name, kWarnedSinceAnnotation, api::FormatTime(work.in.now)});
    work.Say(false, "DisruptionAnnounced",
             fmt::format("{}; pod {} leaves when another has taken its place", warning.message,
                         pod.name),
             pod.name);
  }
  work.warned.emplace(pod.uid, std::move(warning));
}

void Unwarn(Work& work, const PodFacts& pod) {
  if (pod.warned.empty()) return;
  work.out.annotations.push_back({pod.name, kWarnedAnnotation, ""});
  work.out.annotations.push_back({pod.name, kWarnedSinceAnnotation, ""});
  work.Say(false, "DisruptionOver",
           fmt::format("node {} stays: pod {} stays too", pod.node, pod.name), pod.name);
}

bool IsAway(const Work& work, const PodFacts& pod, const NodeFacts& node) {
  if (!IsUnreachable(node) || InView(work.in, pod.uid)) return false;
  const SidecarFacts* sidecar = FindSidecar(work.in, pod.uid);
  return sidecar == nullptr || !sidecar->attending;
}

}  // namespace

void HeedNodes(Work& work) {
  const api::Status& status = work.in.job.status;
  if (work.suspended || status.Is("Succeeded") || status.Is("Failed")) return;
  for (const PodFacts* pod : work.active) {
    const NodeFacts* node = FindNode(work.in, pod->node);
    if (node == nullptr) continue;
    if (auto warning = WarningOf(*node, work.in.disruption_taints)) {
      Warn(work, *pod, std::move(*warning));
    } else {
      Unwarn(work, *pod);
    }
    if (!IsAway(work, *pod, *node)) continue;
    work.away.insert(pod->uid);
    BlameForSilence(work, *pod);
  }
}

}  // namespace ringmaster::planner
