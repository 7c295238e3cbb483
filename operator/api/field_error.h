// What the parser finds wrong in a manifest.
//
// Everything here is a plain value or a pure function.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ringmaster::api {

using Json = nlohmann::json;

// One thing that is wrong in a manifest, e.g.
//   spec.elasticPolicy.minReplicas: 9 is more than maxReplicas (8)
struct FieldError {
  std::string path;
  std::string message;  // holds the value and what is allowed
  std::string ToString() const { return path + ": " + message; }
  friend bool operator==(const FieldError&, const FieldError&) = default;
};
using FieldErrors = std::vector<FieldError>;
// One line for each.
std::string ToString(const FieldErrors& errors);

}  // namespace ringmaster::api
