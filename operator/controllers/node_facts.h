// Reads from a Node what the planner needs. Pure functions on JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/planner/snapshot.h"

namespace ringmaster::controllers {

// `topology_label` is named by the job; empty: none.
planner::NodeFacts ReadNode(const nlohmann::json& node, const std::string& topology_label = "");

}  // namespace ringmaster::controllers
