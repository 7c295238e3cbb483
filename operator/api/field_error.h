// What the parser finds wrong in a manifest.
//
// Everything here is a plain value or a pure function.
#pragma once

#include <cstddef>
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
  // It is only that nobody here knows the field.
  bool unknown_field = false;
  std::string ToString() const { return path + ": " + message; }
  friend bool operator==(const FieldError&, const FieldError&) = default;
};
using FieldErrors = std::vector<FieldError>;
// How many of them are more than unknown fields.
std::size_t CountWrong(const FieldErrors& errors);
// One line for each.
std::string ToString(const FieldErrors& errors);

}  // namespace ringmaster::api
