#include "operator/controllers/node_facts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;

TEST(ReadNodeTest, ReadsWhatConcernsPodsOnIt) {
  const planner::NodeFacts node = ReadNode(Json::parse(R"({"metadata": {"name": "gpu-a"},
    "spec": {"unschedulable": true, "taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]},
    "status": {"conditions": [{"type": "MemoryPressure", "status": "False"},
                              {"type": "Ready", "status": "True"}],
               "nodeInfo": {"bootID": "b", "machineID": "m", "systemUUID": "s"}}})"));
  EXPECT_EQ(node, (planner::NodeFacts{.name = "gpu-a",
                                      .ready = true,
                                      .unschedulable = true,
                                      .boot_id = "b",
                                      .machine = "m s",
                                      .taints = {{"k", "NoExecute", "v"}}}));
  EXPECT_EQ(ReadNode(Json(3)), (planner::NodeFacts{.machine = " "})) << "nonsense";
}

TEST(ReadNodeTest, AJobsOwnLabelComesFirstInThePlaceAndInsideItTheTopology) {
  const Json node = Json::parse(R"({"metadata": {"name": "a", "labels": {
      "kubernetes.io/hostname": "a", "example.com/rack": "r7", "nvidia.com/gpu.clique": "c.1",
      "network.topology.nvidia.com/leaf": "leaf-2", "topology.kubernetes.io/zone": "eu-1",
      "topology.kubernetes.io/region": "eu"}}})");
  EXPECT_EQ(ReadNode(node).place, "eu/eu-1/leaf-2/c.1");
  EXPECT_EQ(ReadNode(node, "example.com/rack").place, "r7/eu/eu-1/leaf-2/c.1");
  EXPECT_EQ(ReadNode(node, "topology.kubernetes.io/zone").place, "eu-1/eu/leaf-2/c.1");
  EXPECT_EQ(ReadNode(node, "example.com/no-such").place, "eu/eu-1/leaf-2/c.1");
}

}  // namespace
}  // namespace ringmaster::controllers
