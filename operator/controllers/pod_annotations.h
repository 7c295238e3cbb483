// Sets the operator's annotations on a new pod, and removes those that a new pod must not have.
// Pure functions on JSON.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ringmaster::controllers {

// By these annotations the operator records facts about a running pod, so a template must not set
// them.
void DropOwnAnnotations(nlohmann::json& pod);

// Records what the pod is made from: the job's digest, and its metadata.generation.
void WriteMadeFrom(nlohmann::json& pod, const std::string& pods_digest, std::int64_t generation);

// Records the announced ends of nodes that this pod ignores: reasons by node.
void WriteAnnounced(nlohmann::json& pod, const std::map<std::string, std::string>& announced);

// Tells autoscalers not to move the pod. Annotations of the template take precedence.
void WriteShields(nlohmann::json& pod);
// The names of those annotations that the operator has written and that are unchanged since.
std::vector<std::string> ReadShields(const nlohmann::json& annotations);

}  // namespace ringmaster::controllers
