// A structural schema, as a CustomResourceDefinition has it (openAPIV3Schema): finds what breaks
// it, drops what it doesn't know, sets its defaults. The parser and the embedded API server both
// ask here and put the answer into words of their own. CEL rules (x-kubernetes-validations) are not
// evaluated.
//
// Pure functions; any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ringmaster::api {

// What a schema can ask of a value.
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
  std::string path;              // spec.worker.template.spec.containers[0].name
  const nlohmann::json* schema;  // of the value; kRequired, kUnknown: of the object that holds it
  // What is wrong. kDuplicate: what the element has in common with an earlier one; kUnknown: the
  // field's name; kRequired: null.
  nlohmann::json value;
};

// Everything in `value` that breaks the schema. A null stands for an absent field, as in
// Kubernetes. `path` is the value's own, empty for a whole object.
std::vector<Violation> FindViolations(const nlohmann::json& schema, const nlohmann::json& value,
                                      const std::string& path);

// Removes the fields that the schema doesn't know; their paths.
std::vector<std::string> PruneUnknown(const nlohmann::json& schema, nlohmann::json& object);

// Removes nulls where the schema has no null, and then sets the defaults of absent fields.
void SetDefaults(const nlohmann::json& schema, nlohmann::json& value);

// Whether the schema takes a whole number or a string, such as a quantity.
bool IsIntOrString(const nlohmann::json& schema);

}  // namespace ringmaster::api
