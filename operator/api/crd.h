// The CustomResourceDefinition of crds/, built into the program: the embedded API server validates
// by it, and the parser takes the allowed fields of a pod template from it.
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
