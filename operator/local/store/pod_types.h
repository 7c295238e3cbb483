// The types of the fields of a pod that this cluster reads: scheduler, kubelet, garbage collector,
// tables. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace ringmaster::local {

// Empty, or the field that has another type, its value, and what is allowed.
std::string WrongTypeInPod(const nlohmann::json& pod);

// A field whose value is null is one that is not there.
void DropNulls(nlohmann::json& value);

}  // namespace ringmaster::local
