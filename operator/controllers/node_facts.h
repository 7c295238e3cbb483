// What the planner wants to know of a node. Pure functions on JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/planner/snapshot.h"

namespace ringmaster::controllers {

// `topology_label`: of the job that asks; empty: it names none.
planner::NodeFacts ReadNode(const nlohmann::json& node, const std::string& topology_label = "");

}  // namespace ringmaster::controllers
