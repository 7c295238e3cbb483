// What becomes of a pod that was asked to leave, for who asked. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace ringmaster::cli {

// `pod`: as it is now; null: it is gone. `job`: the job's object; null: it can't be read. nullopt:
// the operator has not taken it up yet.
std::optional<std::string> DrainText(const std::string& name, const nlohmann::json& pod,
                                     const nlohmann::json& job);

}  // namespace ringmaster::cli
