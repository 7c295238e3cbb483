// The CustomResourceDefinition of crds/, built in: the embedded API server validates by it, and the
// parser takes from it what a pod template may hold.
//
// Everything here is constant after the first call; any thread.
#pragma once

#include <nlohmann/json.hpp>

namespace ringmaster::api {

// The whole definition as JSON text.
const char* CrdText();

// The schema of a HorovodJob (openAPIV3Schema).
const nlohmann::json& JobSchema();

}  // namespace ringmaster::api
