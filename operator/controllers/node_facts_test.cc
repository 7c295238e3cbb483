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

}  // namespace
}  // namespace ringmaster::controllers
