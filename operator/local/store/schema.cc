#include "operator/local/store/schema.h"

#include <cmath>

#include "common/fields/parse.h"
#include "operator/api/structural_schema.h"
#include "operator/kube/yaml.h"

namespace ringmaster::local {
namespace {

using api::Rule;
using api::Violation;

// The names of JSON Schema.
std::string TypeOf(const Json& value) {
  if (value.is_boolean()) return "boolean";
  if (value.is_number_integer()) return "integer";
  return value.type_name();
}

Cause WrongType(const Violation& violation) {
  const Json& schema = *violation.schema;
  const std::string is = TypeOf(violation.value);
  const std::string wanted =
      api::IsIntOrString(schema) ? "integer or string" : schema.value("type", "");
  return {"FieldValueTypeInvalid",
          "Invalid value: \"" + is + "\": " + violation.path + " in body must be of type " +
              wanted + ": \"" + is + "\"",
          violation.path};
}

Cause Unsupported(const Violation& violation) {
  std::string list;
  for (const Json& one : (*violation.schema)["enum"]) {
    list += (list.empty() ? "" : ", ") + one.dump();
  }
  return {"FieldValueNotSupported",
          "Unsupported value: " + violation.value.dump() + ": supported values: " + list,
          violation.path};
}

// The words of kube-apiserver.
Cause CauseOf(const Violation& violation) {
  const Json& schema = *violation.schema;
  const std::string& path = violation.path;
  const auto invalid = [&](const Json& value, const std::string& rule) {
    return Cause{"FieldValueInvalid",
                 "Invalid value: " + value.dump() + ": " + path + " in body " + rule, path};
  };
  const auto too_many = [&](const char* bound) {
    return Cause{"FieldValueTooMany",
                 "Too many: " + std::to_string(violation.value.size()) + ": must have at most " +
                     schema[bound].dump() + " items",
                 path};
  };
  switch (violation.rule) {
    case Rule::kType:
      return WrongType(violation);
    case Rule::kEnum:
      return Unsupported(violation);
    case Rule::kRange:
      if (violation.value.get<double>() < schema.value("minimum", -HUGE_VAL)) {
        return invalid(violation.value,
                       "should be greater than or equal to " + schema["minimum"].dump());
      }
      return invalid(violation.value,
                     "should be less than or equal to " + schema["maximum"].dump());
    case Rule::kMinLength:
      return invalid(violation.value,
                     "should be at least " + schema["minLength"].dump() + " chars long");
    case Rule::kMaxLength:
      return {"FieldValueTooLong",
              "Too long: may not be more than " + schema["maxLength"].dump() + " bytes", path};
    case Rule::kPattern:
      return invalid(violation.value,
                     "should match '" + schema["pattern"].get<std::string>() + "'");
    case Rule::kTime:
      return invalid(violation.value, "must be of type date-time: " + violation.value.dump());
    case Rule::kMinItems:
      return invalid(violation.value.size(),
                     "should have at least " + schema["minItems"].dump() + " items");
    case Rule::kMaxItems:
      return too_many("maxItems");
    case Rule::kDuplicate:
      return {"FieldValueDuplicate", "Duplicate value: " + violation.value.dump(), path};
    case Rule::kRequired:
      return {"FieldValueRequired", "Required value", path};
    case Rule::kMaxProperties:
      return too_many("maxProperties");
    case Rule::kUnknown:
      break;
  }
  return invalid(violation.value, "is an unknown field");
}

}  // namespace

Json::json_pointer PointerOf(std::string path) {
  for (char& c : path) c = c == '.' ? '/' : c;
  return Json::json_pointer(path);
}

Json ValueAt(const Json& object, const std::string& path) {
  try {
    return path.empty() ? Json() : object.value(PointerOf(path), Json());
  } catch (const Json::exception&) {
    return Json();  // brackets
  }
}

tl::expected<CrdSchema, std::string> CrdSchema::FromYaml(const std::string& crd_yaml) {
  std::vector<Json> documents;
  if (Json json = fields::ParseOrDiscard(crd_yaml); !json.is_discarded()) {
    documents.push_back(std::move(json));  // much faster than as YAML
  } else {
    auto read = kube::YamlToJson(crd_yaml);
    if (!read) return tl::unexpected(read.error());
    documents = std::move(*read);
  }
  for (const Json& crd : documents) {
    if (!crd.is_object()) continue;
    if (crd.value("kind", "") != "CustomResourceDefinition") continue;
    try {
      CrdSchema result;
      const Json& names = crd.at("spec").at("names");
      result.short_names_ = names.value("shortNames", std::vector<std::string>{});
      result.categories_ = names.value("categories", std::vector<std::string>{});
      for (const Json& version : crd.at("spec").at("versions")) {
        if (!version.value("storage", false)) continue;
        result.schema_ = version.at("schema").at("openAPIV3Schema");
        result.has_rules_ =
            result.schema_.dump().find("x-kubernetes-validations") != std::string::npos;
        result.printer_columns_ = version.value("additionalPrinterColumns", std::vector<Json>{});
        const Json subresources = version.value("subresources", Json::object());
        if (auto scale = subresources.find("scale"); scale != subresources.end()) {
          result.spec_replicas_path = scale->value("specReplicasPath", result.spec_replicas_path);
          result.status_replicas_path =
              scale->value("statusReplicasPath", result.status_replicas_path);
          result.label_selector_path = scale->value("labelSelectorPath", "");
        }
        return result;
      }
      return tl::unexpected<std::string>("the CustomResourceDefinition has no storage version");
    } catch (const Json::exception& e) {
      return tl::unexpected(std::string("not a CustomResourceDefinition: ") + e.what());
    }
  }
  return tl::unexpected<std::string>("no CustomResourceDefinition in the text");
}

std::vector<std::string> CrdSchema::Prune(Json& object) const {
  return api::PruneUnknown(schema_, object);
}

void CrdSchema::Default(Json& object) const { api::SetDefaults(schema_, object); }

std::vector<Cause> CrdSchema::Validate(const Json& object) const {
  std::vector<Cause> causes;
  for (const Violation& violation : api::FindViolations(schema_, object, "")) {
    // What is unknown and was not pruned is the API server's own (apiVersion, metadata).
    if (violation.rule != Rule::kUnknown) causes.push_back(CauseOf(violation));
  }
  return causes;
}

}  // namespace ringmaster::local
