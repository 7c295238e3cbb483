// What the objects of a job and of its pods say of themselves. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace ringmaster::inspection {

// status.conditions[type] is True; null otherwise.
const nlohmann::json* TrueCondition(const nlohmann::json& object, const std::string& type);

// "train-worker-3" is 3 of the job "train": the operator names pods so. nullopt: no pod of it.
std::optional<int> IndexInName(std::string_view pod, const std::string& job);

}  // namespace ringmaster::inspection
