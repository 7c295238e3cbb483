#include "operator/cli/run_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/api/time.h"
#include "operator/cli/kube_failure.h"

namespace ringmaster::cli {
namespace {

using kube::Json;

// The run's API server marks the node as unreachable.
bool IsSilent(const Json& node) {
  const Json& taints = fields::ListAt(node, "/spec/taints");
  return std::any_of(taints.begin(), taints.end(), [](const Json& taint) {
    return fields::Text(taint, "key") == "node.kubernetes.io/unreachable";
  });
}

NodeSeen ReadNode(const Json& node) {
  return {.cordoned = fields::Member(fields::At(node, "/spec"), "unschedulable") == Json(true),
          .deleting = fields::At(node, "/metadata").contains("deletionTimestamp"),
          .silent = IsSilent(node),
          .pods = fields::TextAt(node, "/status/allocatable/pods")};
}

int IndexOf(const std::string& pod) { return std::atoi(pod.substr(pod.rfind('-') + 1).c_str()); }

PodSeen ReadPod(const Json& pod) {
  const auto annotated = [&](const char* name) {
    return !fields::Text(fields::At(pod, "/metadata/annotations"), name).empty();
  };
  const std::string phase = fields::TextAt(pod, "/status/phase");
  PodSeen seen;
  seen.name = fields::TextAt(pod, "/metadata/name");
  seen.node = fields::TextAt(pod, "/spec/nodeName");
  seen.index = IndexOf(seen.name);
  seen.drain_asked = annotated(api::kDrainAnnotation);
  seen.drain_known = annotated(api::kDrainSinceAnnotation);
  seen.warned = annotated(api::kWarnedAnnotation);
  // The API server of a run evicts nobody, so no condition of the pod plays a part.
  seen.stays = !seen.drain_asked && !fields::At(pod, "/metadata").contains("deletionTimestamp") &&
               phase != "Succeeded" && phase != "Failed";
  return seen;
}

std::set<std::string> TroubledNodes(const Json& job, std::chrono::system_clock::time_point now) {
  std::set<std::string> troubled;
  for (const Json& node : fields::ListAt(job, "/status/troubledNodes")) {
    const auto until = api::ParseTime(fields::Text(node, "avoidUntil"));
    if (until && *until > now) troubled.insert(fields::Text(node, "name"));
  }
  return troubled;
}

}  // namespace

Outcome<RunNodes> ObserveRunNodes(kube::KubeApi* api, const std::string& ns, const std::string& job,
                                  std::chrono::system_clock::time_point now) {
  RunNodes seen;
  const auto nodes = api->ListAll(kube::Nodes(), "", {});
  if (!nodes) return tl::unexpected(FromKube(nodes.error()));
  for (const Json& node : nodes->items)
    seen.nodes[fields::TextAt(node, "/metadata/name")] = ReadNode(node);
  if (job.empty()) return seen;
  const auto pods = api->ListAll(kube::Pods(), ns,
                                 {.label_selector = fmt::format("{}={}", api::kJobNameLabel, job)});
  if (!pods) return tl::unexpected(FromKube(pods.error()));
  for (const Json& pod : pods->items) seen.pods.push_back(ReadPod(pod));
  const auto object = api->Get(kube::HorovodJobs(), ns, job);
  if (!object) return tl::unexpected(FromKube(object.error()));
  seen.troubled = TroubledNodes(*object, now);
  return seen;
}

}  // namespace ringmaster::cli
