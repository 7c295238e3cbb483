#include "operator/local/schema.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "operator/kube/yaml.h"

namespace ringmaster::local {
namespace {

bool Flag(const Json& schema, const char* name) { return schema.value(name, false); }

std::string Join(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

std::string TypeOf(const Json& value) {
  if (value.is_object()) return "object";
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "boolean";
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  return "null";
}

// metadata is the API server's, whatever a CRD says of it.
void PruneMetadata(Json& metadata, const std::string& path, std::vector<std::string>& pruned) {
  static const std::set<std::string> kFields = {"annotations",
                                                "creationTimestamp",
                                                "deletionGracePeriodSeconds",
                                                "deletionTimestamp",
                                                "finalizers",
                                                "generateName",
                                                "generation",
                                                "labels",
                                                "managedFields",
                                                "name",
                                                "namespace",
                                                "ownerReferences",
                                                "resourceVersion",
                                                "selfLink",
                                                "uid"};
  if (!metadata.is_object()) return;
  for (auto it = metadata.begin(); it != metadata.end();) {
    if (kFields.count(it.key())) {
      ++it;
      continue;
    }
    pruned.push_back(Join(path, it.key()));
    it = metadata.erase(it);
  }
}

void PruneAt(const Json& schema, Json& value, const std::string& path, bool embedded,
             std::vector<std::string>& pruned) {
  if (value.is_array()) {
    auto items = schema.find("items");
    if (items == schema.end()) return;
    for (size_t i = 0; i < value.size(); ++i) {
      PruneAt(*items, value[i], path + "[" + std::to_string(i) + "]",
              Flag(*items, "x-kubernetes-embedded-resource"), pruned);
    }
    return;
  }
  if (!value.is_object()) return;
  static const Json kNone = Json::object();
  auto found = schema.find("properties");
  const Json& properties = found == schema.end() ? kNone : *found;
  auto additional = schema.find("additionalProperties");
  bool keep = Flag(schema, "x-kubernetes-preserve-unknown-fields");
  for (auto it = value.begin(); it != value.end();) {
    const std::string& key = it.key();
    bool implied = embedded && (key == "apiVersion" || key == "kind");
    if (embedded && key == "metadata") {
      PruneMetadata(*it, Join(path, key), pruned);
    } else if (auto property = properties.find(key); property != properties.end()) {
      PruneAt(*property, *it, Join(path, key), Flag(*property, "x-kubernetes-embedded-resource"),
              pruned);
    } else if (additional != schema.end() && additional->is_object()) {
      PruneAt(*additional, *it, Join(path, key), false, pruned);
    } else if (!implied && !keep && additional == schema.end()) {
      pruned.push_back(Join(path, key));
      it = value.erase(it);
      continue;
    }
    ++it;
  }
}

void DefaultAt(const Json& schema, Json& value) {
  if (value.is_array()) {
    auto items = schema.find("items");
    if (items == schema.end()) return;
    for (Json& item : value) DefaultAt(*items, item);
  } else if (value.is_object()) {
    if (auto properties = schema.find("properties"); properties != schema.end()) {
      for (const auto& [key, property] : properties->items()) {
        if (auto preset = property.find("default");
            preset != property.end() &&
            (!value.contains(key) || (value[key].is_null() && !Flag(property, "nullable")))) {
          value[key] = *preset;
        }
        if (value.contains(key)) DefaultAt(property, value[key]);
      }
    }
    if (auto additional = schema.find("additionalProperties");
        additional != schema.end() && additional->is_object()) {
      for (Json& item : value) DefaultAt(*additional, item);
    }
  }
}

// std::regex recurses with the length of the text: nothing that is this long is let through.
constexpr size_t kLongestMatch = 1024;

// Whether `text` matches; true for what only RE2 understands: that is left to a real API server.
bool Matches(const std::string& text, const std::string& pattern) {
  if (text.size() > kLongestMatch) return false;
  static thread_local std::map<std::string, std::optional<std::regex>> compiled;
  auto at = compiled.find(pattern);
  if (at == compiled.end()) {
    at = compiled.emplace(pattern, std::nullopt).first;
    try {
      at->second.emplace(pattern);
    } catch (const std::regex_error&) {
    }
  }
  return !at->second || std::regex_search(text, *at->second);
}

size_t Characters(const std::string& utf8) {
  return static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

class Validator {
 public:
  std::vector<Cause> causes;

  void Check(const Json& schema, const Json& value, const std::string& path) {
    if (value.is_null() && Flag(schema, "nullable")) return;
    if (!CheckType(schema, value, path)) return;
    CheckEnum(schema, value, path);
    if (value.is_number()) CheckNumber(schema, value, path);
    if (value.is_string()) CheckString(schema, value.get<std::string>(), path);
    if (value.is_array()) CheckArray(schema, value, path);
    if (value.is_object()) CheckObject(schema, value, path);
  }

 private:
  void Wrong(const std::string& path, const Json& value, const std::string& rule) {
    causes.push_back({"FieldValueInvalid",
                      "Invalid value: " + value.dump() + ": " + path + " in body " + rule, path});
  }

  bool CheckType(const Json& schema, const Json& value, const std::string& path) {
    std::string is = TypeOf(value);
    if (Flag(schema, "x-kubernetes-int-or-string")) {
      if (is == "integer" || is == "string") return true;
      causes.push_back({"FieldValueTypeInvalid",
                        "Invalid value: \"" + is + "\": " + path +
                            " in body must be of type integer or string: \"" + is + "\"",
                        path});
      return false;
    }
    std::string type = schema.value("type", "");
    bool fits = type.empty() || type == is || (type == "number" && is == "integer") ||
                (type == "integer" && is == "number" &&
                 std::floor(value.get<double>()) == value.get<double>());
    if (!fits) {
      causes.push_back({"FieldValueTypeInvalid",
                        "Invalid value: \"" + is + "\": " + path + " in body must be of type " +
                            type + ": \"" + is + "\"",
                        path});
    }
    return fits;
  }

  void CheckEnum(const Json& schema, const Json& value, const std::string& path) {
    auto allowed = schema.find("enum");
    if (allowed == schema.end()) return;
    std::string list;
    for (const Json& one : *allowed) {
      if (one == value) return;
      list += (list.empty() ? "" : ", ") + one.dump();
    }
    causes.push_back({"FieldValueNotSupported",
                      "Unsupported value: " + value.dump() + ": supported values: " + list, path});
  }

  void CheckNumber(const Json& schema, const Json& value, const std::string& path) {
    double v = value.get<double>();
    if (auto it = schema.find("minimum"); it != schema.end() && v < it->get<double>()) {
      Wrong(path, value, "should be greater than or equal to " + it->dump());
    }
    if (auto it = schema.find("maximum"); it != schema.end() && v > it->get<double>()) {
      Wrong(path, value, "should be less than or equal to " + it->dump());
    }
  }

  void CheckString(const Json& schema, const std::string& value, const std::string& path) {
    size_t length = Characters(value);
    if (auto it = schema.find("minLength"); it != schema.end() && length < it->get<size_t>()) {
      Wrong(path, value, "should be at least " + it->dump() + " chars long");
    }
    if (auto it = schema.find("maxLength"); it != schema.end() && length > it->get<size_t>()) {
      causes.push_back(
          {"FieldValueTooLong", "Too long: may not be more than " + it->dump() + " bytes", path});
    }
    if (auto it = schema.find("pattern");
        it != schema.end() && !Matches(value, it->get<std::string>())) {
      Wrong(path, value, "should match '" + it->get<std::string>() + "'");
    }
    static const std::string kTime =
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?"
        "([Zz]|[-+][0-9]{2}:[0-9]{2})$";
    if (schema.value("format", "") == "date-time" && !Matches(value, kTime)) {
      Wrong(path, value, "must be of type date-time: " + Json(value).dump());
    }
  }

  void CheckArray(const Json& schema, const Json& value, const std::string& path) {
    if (auto it = schema.find("minItems"); it != schema.end() && value.size() < it->get<size_t>()) {
      Wrong(path, value.size(), "should have at least " + it->dump() + " items");
    }
    if (auto it = schema.find("maxItems"); it != schema.end() && value.size() > it->get<size_t>()) {
      causes.push_back({"FieldValueTooMany",
                        "Too many: " + std::to_string(value.size()) + ": must have at most " +
                            it->dump() + " items",
                        path});
    }
    auto items = schema.find("items");
    if (items == schema.end()) return;
    for (size_t i = 0; i < value.size(); ++i) {
      Check(*items, value[i], path + "[" + std::to_string(i) + "]");
    }
    CheckTwins(schema, value, path);
  }

  // x-kubernetes-list-type: no element of a set, and no key of a map, is there twice.
  void CheckTwins(const Json& schema, const Json& list, const std::string& path) {
    std::string kind = schema.value("x-kubernetes-list-type", "");
    if (kind != "set" && kind != "map") return;
    const Json keys = schema.value("x-kubernetes-list-map-keys", Json::array());
    std::set<Json> seen;
    for (size_t i = 0; i < list.size(); ++i) {
      Json identity = list[i];
      if (kind == "map") {
        if (!list[i].is_object()) continue;
        identity = Json::object();
        for (const std::string key : keys) identity[key] = list[i].value(key, Json());
      }
      if (seen.insert(identity).second) continue;
      causes.push_back({"FieldValueDuplicate", "Duplicate value: " + identity.dump(),
                        path + "[" + std::to_string(i) + "]"});
    }
  }

  void CheckObject(const Json& schema, const Json& value, const std::string& path) {
    for (const Json& key : schema.value("required", Json::array())) {
      if (!value.contains(key.get<std::string>())) {
        causes.push_back(
            {"FieldValueRequired", "Required value", Join(path, key.get<std::string>())});
      }
    }
    if (auto it = schema.find("maxProperties");
        it != schema.end() && value.size() > it->get<size_t>()) {
      causes.push_back({"FieldValueTooMany",
                        "Too many: " + std::to_string(value.size()) + ": must have at most " +
                            it->dump() + " items",
                        path});
    }
    if (auto properties = schema.find("properties"); properties != schema.end()) {
      for (const auto& [key, property] : properties->items()) {
        if (auto it = value.find(key); it != value.end()) Check(property, *it, Join(path, key));
      }
    }
    if (auto additional = schema.find("additionalProperties");
        additional != schema.end() && additional->is_object()) {
      for (const auto& [key, item] : value.items()) Check(*additional, item, Join(path, key));
    }
  }
};

// A null in an object is the absence of a value unless the schema says nullable.
void DropNulls(const Json& schema, Json& value) {
  if (value.is_array()) {
    if (auto items = schema.find("items"); items != schema.end()) {
      for (Json& item : value) DropNulls(*items, item);
    }
    return;
  }
  if (!value.is_object()) return;
  static const Json kNone = Json::object();
  auto known = schema.find("properties");
  const Json& properties = known == schema.end() ? kNone : *known;
  auto additional = schema.find("additionalProperties");
  for (auto it = value.begin(); it != value.end();) {
    const Json* below = nullptr;
    if (auto property = properties.find(it.key()); property != properties.end()) {
      below = &*property;
    } else if (additional != schema.end() && additional->is_object()) {
      below = &*additional;
    }
    if (below != nullptr && it->is_null() && !Flag(*below, "nullable")) {
      it = value.erase(it);
      continue;
    }
    if (below != nullptr) DropNulls(*below, *it);
    ++it;
  }
}

}  // namespace

tl::expected<CrdSchema, std::string> CrdSchema::FromYaml(const std::string& crd_yaml) {
  std::vector<Json> documents;
  if (Json json = Json::parse(crd_yaml, nullptr, false); !json.is_discarded()) {
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
  std::vector<std::string> pruned;
  PruneAt(schema_, object, "", true, pruned);
  return pruned;
}

void CrdSchema::Default(Json& object) const {
  DropNulls(schema_, object);
  DefaultAt(schema_, object);
}

std::vector<Cause> CrdSchema::Validate(const Json& object) const {
  Validator validator;
  validator.Check(schema_, object, "");
  return std::move(validator.causes);
}

}  // namespace ringmaster::local
