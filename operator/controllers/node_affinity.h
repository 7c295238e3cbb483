// Which nodes the scheduler avoids for a new pod. Pure functions on JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ringmaster::controllers {

// The scheduler takes one of these nodes only where no other fits.
void AvoidNodes(nlohmann::json& pod, const std::vector<std::string>& nodes);

// The scheduler takes none of these nodes.
void KeepOffNodes(nlohmann::json& pod, const std::vector<std::string>& nodes);

}  // namespace ringmaster::controllers
