// Helpers for tests about nodes that end, are silent or fail: a job on three nodes, and the
// decisions about nodes. Tests only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/planner/disruption.h"
#include "operator/planner/testing/world.h"

namespace ringmaster::planner {

// Three training pods, each on its own node.
inline World OnThreeNodes() {
  World world = World::Training(3);
  for (const int i : {0, 1, 2}) world.On(i, "gpu-" + std::to_string(i));
  for (PodFacts& pod : world.in.pods) pod.http = "10.0.0.1:80";
  world.in.disruption_taints = DefaultDisruptionTaints();
  return world;
}

inline std::vector<std::string> Reasons(const Decision& decision) {
  std::vector<std::string> reasons;
  for (const Event& event : decision.events) reasons.push_back(event.reason);
  return reasons;
}

inline const api::TroubledNode* Troubled(const Decision& out, const std::string& name) {
  for (const api::TroubledNode& node : out.status.troubled_nodes) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

}  // namespace ringmaster::planner
