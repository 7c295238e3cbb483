#include "operator/api/structure.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "operator/api/object_reader.h"
#include "operator/api/structural_schema.h"

namespace ringmaster::api {
namespace {

// A longer list of names would not help the reader.
constexpr std::size_t kNamesToList = 16;

std::string WantedType(const Json& schema, const Json& value) {
  if (IsIntOrString(schema)) {
    return schema.contains("pattern") ? "a quantity, such as 1, 500m or 2Gi"
                                      : "a whole number or a string";
  }
  const std::string type = schema.value("type", "");
  if (type == "integer") {
    return fmt::format("a whole number from {} to {}", schema.at("minimum").get<std::int64_t>(),
                       schema.at("maximum").get<std::int64_t>());
  }
  if (type == "boolean") return "true or false";
  if (type == "array") return "a list";
  if (type == "object") return "an object";
  return value.is_primitive() ? "a string (put it in quotes)" : "a string";
}

std::string UnknownField(const Json& schema, const std::string& name) {
  std::vector<std::string> names;
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [known, property] : properties.items()) names.push_back(known);
  const std::string guess = DidYouMean(name, names);
  if (!guess.empty()) return fmt::format("unknown field; did you mean \"{}\"?", guess);
  if (names.size() > kNamesToList) return "unknown field";
  return fmt::format("unknown field; known here: {}", fmt::join(names, ", "));
}

std::string ErrorText(const Violation& violation) {
  const Json& schema = *violation.schema;
  const Json& value = violation.value;
  switch (violation.rule) {
    case Rule::kType:
      return fmt::format("{} is {}: must be {}", Show(value), TypeName(value),
                         WantedType(schema, value));
    case Rule::kEnum:
      return fmt::format("{} is not allowed: must be one of {}", Show(value),
                         fmt::join(schema["enum"].get<std::vector<std::string>>(), ", "));
    case Rule::kRange:
      return fmt::format("{} is out of range: must be from {} to {}", Show(value),
                         schema.value("minimum", std::numeric_limits<std::int64_t>::min()),
                         schema.value("maximum", std::numeric_limits<std::int64_t>::max()));
    case Rule::kMinLength:
      return "\"\" is empty: it needs a value";
    case Rule::kMaxLength:
      return fmt::format("{} is too long: at most {} characters", Show(value),
                         schema["maxLength"].dump());
    case Rule::kPattern:
      if (!IsIntOrString(schema)) {
        return fmt::format("{} must match {}", Show(value), schema["pattern"].get<std::string>());
      }
      return fmt::format("{} is not a quantity: must be such as 1, 500m or 2Gi", Show(value));
    case Rule::kTime:
      return fmt::format("{} is no time: must be such as 2026-01-31T12:00:00Z", Show(value));
    case Rule::kMinItems:
      return fmt::format("has {} elements: it needs at least {}", value.size(),
                         schema["minItems"].dump());
    case Rule::kMaxItems:
      return fmt::format("has {} elements: at most {} are allowed", value.size(),
                         schema["maxItems"].dump());
    case Rule::kDuplicate:
      return fmt::format("{} is there twice", Show(value));
    case Rule::kRequired:
      return "is required";
    case Rule::kMaxProperties:
      return fmt::format("has {} entries: at most {} are allowed", value.size(),
                         schema["maxProperties"].dump());
    case Rule::kUnknown:
      return UnknownField(schema, value);
  }
  return "";
}

}  // namespace

void CheckStructure(const Json& schema, const Json& value, const std::string& path,
                    FieldErrors* errors) {
  for (const Violation& violation : FindViolations(schema, value, path)) {
    errors->push_back({violation.path, ErrorText(violation), violation.rule == Rule::kUnknown});
  }
}

}  // namespace ringmaster::api
