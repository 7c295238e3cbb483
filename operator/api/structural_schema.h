// Applies a structural schema (openAPIV3Schema of a CustomResourceDefinition): finds violations,
// removes unknown fields, sets defaults. The parser and the embedded API server both use it, each
// with messages of its own. CEL rules (x-kubernetes-validations) are not evaluated.
//
// Pure functions; any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ringmaster::api {

// The kinds of rules in a schema.
enum class Rule {
  kType,
  kEnum,
  kRange,
  kMinLength,
  kMaxLength,
  kPattern,
  kTime,
  kMinItems,
  kMaxItems,
  kDuplicate,
  kRequired,
  kMaxProperties,
  kUnknown,
};

struct Violation {
  Rule rule;
  std::string path;  // spec.worker.template.spec.containers[0].name
  // Of the value; for kRequired and kUnknown: of the containing object.
  const nlohmann::json* schema;
  // The wrong value. kDuplicate: the part that the element shares with an earlier one; kUnknown:
  // the field's name; kRequired: null.
  nlohmann::json value;
};

// All violations of the schema in `value`. A null counts as an absent field, as in Kubernetes.
// `path` is the path of `value`, empty for a whole object.
std::vector<Violation> FindViolations(const nlohmann::json& schema, const nlohmann::json& value,
                                      const std::string& path);

// Removes the fields that the schema doesn't know, and returns their paths.
std::vector<std::string> PruneUnknown(const nlohmann::json& schema, nlohmann::json& object);

// Removes nulls that the schema doesn't allow, and then sets the defaults of absent fields.
void SetDefaults(const nlohmann::json& schema, nlohmann::json& value);

// The schema accepts a whole number or a string, such as a quantity.
bool IsIntOrString(const nlohmann::json& schema);

}  // namespace ringmaster::api
