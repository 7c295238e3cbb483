// The annotations that a new pod gets from the operator, and those that it must not bring along.
// Pure functions on JSON.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ringmaster::controllers {

// The operator states things about a running pod by these annotations, so a template can't have
// them.
void DropOwnAnnotations(nlohmann::json& pod);

// The ends of nodes that the pod is made in spite of: reasons by node.
void WriteAnnounced(nlohmann::json& pod, const std::map<std::string, std::string>& announced);

}  // namespace ringmaster::controllers
