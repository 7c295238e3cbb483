// Describes what becomes of a pod that was asked to leave. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace ringmaster::cli {

// `pod` is the current object, null if it is gone. `job` is the job's object, null if it can't be
// read. nullopt: the operator has not noticed the request yet.
std::optional<std::string> DrainText(const std::string& name, const nlohmann::json& pod,
                                     const nlohmann::json& job);

}  // namespace ringmaster::cli
