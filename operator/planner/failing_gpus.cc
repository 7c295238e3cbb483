// Part of phase 0: pods with a GPU that won't go on leave as those do whose node is about to go.
#include <fmt/format.h>

#include "operator/api/labels.h"
#include "operator/planner/phases.h"

namespace ringmaster::planner {
namespace {

// "GPU 0000:17:00.0 of worker 1 fails: Xid 79, it has fallen off the bus"; empty: none is known to.
std::string WhatFails(const Snapshot& in, const PodFacts& pod) {
  const SidecarFacts* sidecar = FindSidecar(in, pod.uid);
  if (sidecar == nullptr) return "";
  std::vector<std::string> failing;
  for (const job::GpuHealth& gpu : sidecar->failing_gpus) {
    if (!gpu.failing.empty()) failing.push_back(job::Describe(gpu));
  }
  return Listed(failing, "; ");
}

}  // namespace

bool ObserveGpus(const Snapshot& in, PodSets& pods, DecisionDraft& out, const PodFacts& pod) {
  // A GPU does not recover by itself, so what is written on the pod holds also while its sidecar
  // has yet to connect to this operator.
  const bool known = pod.warned == kGpuUnhealthy;
  const std::string fails = WhatFails(in, pod);
  if (!known && fails.empty()) return false;
  pods.warned.emplace(
      pod.uid, Warning{.reason = kGpuUnhealthy, .message = fails, .ends = true, .of_pod = true});
  if (known && pod.warned_since) return true;
  out.annotations.push_back({pod.name, api::kWarnedAnnotation, kGpuUnhealthy});
  out.annotations.push_back({pod.name, api::kWarnedSinceAnnotation, api::FormatTime(in.now)});
  out.AddEvent(true, kGpuUnhealthy,
               fmt::format("pod {} on node {} leaves at the end of a step: {}", pod.name,
                           pod.node.empty() ? "(not known)" : pod.node, fails),
               pod.name);
  BlameForGpu(in, out, pod);
  return true;
}

}  // namespace ringmaster::planner
