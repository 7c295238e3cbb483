// The annotations that a new pod gets from the operator, and those that it must not bring along.
// Pure functions on JSON.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ringmaster::controllers {

// The operator states things about a running pod by these annotations, so a template can't have
// them.
void DropOwnAnnotations(nlohmann::json& pod);

// The ends of nodes that the pod is made in spite of: reasons by node.
void WriteAnnounced(nlohmann::json& pod, const std::map<std::string, std::string>& announced);

// Tells autoscalers to leave the pod where it is. What the template says of that stays as it is.
void WriteShields(nlohmann::json& pod);
// Which of these annotations are the operator's: that it wrote, and nobody has changed since.
std::vector<std::string> ReadShields(const nlohmann::json& annotations);

}  // namespace ringmaster::controllers
