#include "operator/controllers/node_facts.h"

#include <nlohmann/json.hpp>

#include "common/fields/fields.h"

namespace ringmaster::controllers {

using Json = nlohmann::json;

namespace {

// Labels that tell where a node is, from the largest area to the smallest. They are set by
// Kubernetes' cloud providers, by NVIDIA's Topograph (before and since 1.0), by Google's and
// Amazon's clusters, and by NVIDIA's GPU operator for nodes that share NVLink.
constexpr const char* kPlaceLabels[] = {"topology.kubernetes.io/region",
                                        "topology.kubernetes.io/zone",
                                        "network.topology.nvidia.com/core",
                                        "network.topology.nvidia.com/spine",
                                        "network.topology.nvidia.com/leaf",
                                        "fabric.topograph.run/tier-2",
                                        "fabric.topograph.run/tier-1",
                                        "fabric.topograph.run/tier-0",
                                        "cloud.google.com/gce-topology-block",
                                        "cloud.google.com/gce-topology-subblock",
                                        "cloud.google.com/gce-topology-host",
                                        "topology.k8s.aws/network-node-layer-1",
                                        "topology.k8s.aws/network-node-layer-2",
                                        "topology.k8s.aws/network-node-layer-3",
                                        "network.topology.nvidia.com/accelerator",
                                        "nvidia.com/gpu.clique"};

// Joins the values of the node's labels, so that nodes near each other have a common beginning.
std::string PlaceOf(const Json& labels, const std::string& topology_label) {
  std::string place;
  const auto add = [&](const char* label) {
    const std::string value = fields::Text(labels, label);
    if (!value.empty()) place += (place.empty() ? "" : "/") + value;
  };
  if (!topology_label.empty()) add(topology_label.c_str());
  for (const char* label : kPlaceLabels) {
    if (label != topology_label) add(label);
  }
  return place;
}

}  // namespace

planner::NodeFacts ReadNode(const Json& node, const std::string& topology_label) {
  planner::NodeFacts facts;
  const Json& spec = fields::Member(node, "spec");
  const Json& status = fields::Member(node, "status");
  facts.name = fields::Text(fields::Member(node, "metadata"), "name");
  facts.place = PlaceOf(fields::ObjectAt(node, "/metadata/labels"), topology_label);
  facts.unschedulable = fields::Member(spec, "unschedulable") == Json(true);
  for (const Json& taint : fields::Member(spec, "taints")) {
    facts.taints.push_back(
        {fields::Text(taint, "key"), fields::Text(taint, "effect"), fields::Text(taint, "value")});
  }
  for (const Json& condition : fields::Member(status, "conditions")) {
    if (fields::Text(condition, "type") == "Ready")
      facts.ready = fields::Text(condition, "status") == "True";
  }
  const Json& info = fields::Member(status, "nodeInfo");
  facts.boot_id = fields::Text(info, "bootID");
  facts.machine = fields::Text(info, "machineID") + " " + fields::Text(info, "systemUUID");
  return facts;
}

}  // namespace ringmaster::controllers
