// What the planner wants to know of a node. Pure functions on JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "operator/planner/snapshot.h"

namespace ringmaster::controllers {

planner::NodeFacts ReadNode(const nlohmann::json& node);

}  // namespace ringmaster::controllers
