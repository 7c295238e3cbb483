#include "operator/api/structural_schema.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include "operator/api/object_reader.h"

namespace ringmaster::api {
namespace {

// std::regex recurses once per character. No valid value of the schema's patterns is this long.
constexpr std::size_t kLongestMatch = 1024;

constexpr char kDateTime[] =
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?"
    "([Zz]|[-+][0-9]{2}:[0-9]{2})$";

bool HasFlag(const Json& schema, const char* name) { return schema.value(name, false); }

std::string PathOfField(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

std::string PathOfItem(const std::string& path, std::size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

const Json& PropertiesOf(const Json& schema) {
  static const Json kNone = Json::object();
  const auto properties = schema.find("properties");
  return properties == schema.end() ? kNone : *properties;
}

// The schema of an object's field, or null if there is none.
const Json* SchemaOfField(const Json& schema, const std::string& name) {
  const Json& properties = PropertiesOf(schema);
  if (const auto property = properties.find(name); property != properties.end()) return &*property;
  const auto additional = schema.find("additionalProperties");
  return additional != schema.end() && additional->is_object() ? &*additional : nullptr;
}

bool KeepsUnknown(const Json& schema) {
  return schema.contains("additionalProperties") ||
         HasFlag(schema, "x-kubernetes-preserve-unknown-fields");
}

// Also returns true for a pattern that only RE2 understands: a real API server checks that.
bool MatchesPattern(const std::string& text, const std::string& pattern) {
  if (text.size() > kLongestMatch) return false;
  // Compiled patterns are cached: the schema has few, and compiling is the most expensive part
  // here.
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

std::size_t CharactersOf(const std::string& utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

bool HasTypeOfSchema(const Json& schema, const Json& value) {
  if (IsIntOrString(schema)) return value.is_number_integer() || value.is_string();
  const std::string type = schema.value("type", "");
  if (type == "integer") return IsWhole(value);
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  return type.empty() || value.is_string();
}

// Walks a value and its schema together.
class SchemaChecker {
 public:
  std::vector<Violation> violations;

  void Check(const Json& schema, const Json& value, const std::string& path) {
    if (value.is_null() && HasFlag(schema, "nullable")) return;
    const auto wrong = [&](Rule rule) { violations.push_back({rule, path, &schema, value}); };
    if (!HasTypeOfSchema(schema, value)) return wrong(Rule::kType);
    if (const auto allowed = schema.find("enum");
        allowed != schema.end() &&
        std::find(allowed->begin(), allowed->end(), value) == allowed->end()) {
      wrong(Rule::kEnum);
    }
    if (value.is_number() && !IsInRange(schema, value)) wrong(Rule::kRange);
    if (value.is_string()) CheckString(schema, value.get_ref<const std::string&>(), wrong);
    if (value.is_array()) CheckList(schema, value, path);
    if (value.is_object()) CheckObject(schema, value, path);
  }

 private:
  static bool IsInRange(const Json& schema, const Json& number) {
    using Limits = std::numeric_limits<std::int64_t>;
    if (!schema.contains("minimum") && !schema.contains("maximum")) return true;
    return IsWithin(number, schema.value("minimum", Limits::min()),
                    schema.value("maximum", Limits::max()));
  }

  // The count exceeds the schema's `bound`.
  static bool IsAbove(const Json& schema, const char* bound, std::size_t count) {
    const auto most = schema.find(bound);
    return most != schema.end() && count > most->get<std::size_t>();
  }

  template <class Wrong>
  static void CheckString(const Json& schema, const std::string& text, const Wrong& wrong) {
    const std::size_t length = CharactersOf(text);
    if (length < schema.value("minLength", std::size_t{0})) wrong(Rule::kMinLength);
    if (IsAbove(schema, "maxLength", length)) wrong(Rule::kMaxLength);
    if (const auto pattern = schema.find("pattern");
        pattern != schema.end() && !MatchesPattern(text, pattern->get<std::string>())) {
      wrong(Rule::kPattern);
    }
    if (schema.value("format", "") == "date-time" && !MatchesPattern(text, kDateTime)) {
      wrong(Rule::kTime);
    }
  }

  void CheckList(const Json& schema, const Json& list, const std::string& path) {
    if (IsAbove(schema, "maxItems", list.size())) {
      // Reports the length only, since the list may have very many wrong elements.
      return violations.push_back({Rule::kMaxItems, path, &schema, list});
    }
    if (list.size() < schema.value("minItems", std::size_t{0})) {
      violations.push_back({Rule::kMinItems, path, &schema, list});
    }
    const auto items = schema.find("items");
    if (items == schema.end()) return;
    for (std::size_t i = 0; i < list.size(); ++i) Check(*items, list[i], PathOfItem(path, i));
    CheckDuplicates(schema, list, path);
  }

  // x-kubernetes-list-type: the elements of a set, and the keys of a map, must be unique.
  void CheckDuplicates(const Json& schema, const Json& list, const std::string& path) {
    const std::string kind = schema.value("x-kubernetes-list-type", "");
    if (kind != "set" && kind != "map") return;
    const Json keys = schema.value("x-kubernetes-list-map-keys", Json::array());
    const Json& properties = PropertiesOf(schema.at("items"));
    std::set<Json> seen;
    for (std::size_t i = 0; i < list.size(); ++i) {
      Json identity = list[i];
      if (kind == "map") {
        if (!list[i].is_object()) continue;
        identity = Json::object();
        for (const std::string key : keys) {
          const Json preset = properties.value(key, Json::object()).value("default", Json());
          identity[key] = list[i].value(key, preset);
        }
      }
      if (seen.insert(identity).second) continue;
      violations.push_back({Rule::kDuplicate, PathOfItem(path, i), &schema, identity});
    }
  }

  void CheckObject(const Json& schema, const Json& object, const std::string& path) {
    for (const std::string name : schema.value("required", Json::array())) {
      if (!object.value(name, Json()).is_null()) continue;
      violations.push_back({Rule::kRequired, PathOfField(path, name), &schema, nullptr});
    }
    if (IsAbove(schema, "maxProperties", object.size())) {
      violations.push_back({Rule::kMaxProperties, path, &schema, object});
    }
    for (const auto& [name, value] : object.items()) {
      if (const Json* field = SchemaOfField(schema, name)) {
        if (!value.is_null()) Check(*field, value, PathOfField(path, name));
      } else if (!KeepsUnknown(schema)) {
        violations.push_back({Rule::kUnknown, PathOfField(path, name), &schema, name});
      }
    }
  }
};

// The API server defines ObjectMeta, whatever a CustomResourceDefinition says about it.
const Json& ObjectMetaSchema() {
  static const Json kSchema = [] {
    Json properties;
    for (const char* name :
         {"annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp",
          "finalizers", "generateName", "generation", "labels", "managedFields", "name",
          "namespace", "ownerReferences", "resourceVersion", "selfLink", "uid"}) {
      properties[name] = {{"x-kubernetes-preserve-unknown-fields", true}};
    }
    return Json{{"properties", properties}};
  }();
  return kSchema;
}

void PruneAt(const Json& schema, Json& value, const std::string& path,
             std::vector<std::string>* pruned) {
  if (value.is_array()) {
    const auto items = schema.find("items");
    if (items == schema.end()) return;
    for (std::size_t i = 0; i < value.size(); ++i) {
      PruneAt(*items, value[i], PathOfItem(path, i), pruned);
    }
    return;
  }
  if (!value.is_object()) return;
  // A whole object always has apiVersion, kind and metadata, even if its schema doesn't name them.
  const bool whole = path.empty() || HasFlag(schema, "x-kubernetes-embedded-resource");
  for (auto it = value.begin(); it != value.end();) {
    const std::string& name = it.key();
    const std::string below = PathOfField(path, name);
    const Json* field =
        whole && name == "metadata" ? &ObjectMetaSchema() : SchemaOfField(schema, name);
    const bool known = (whole && (name == "apiVersion" || name == "kind")) || KeepsUnknown(schema);
    if (field != nullptr) {
      PruneAt(*field, *it, below, pruned);
    } else if (!known) {
      pruned->push_back(below);
      it = value.erase(it);
      continue;
    }
    ++it;
  }
}

}  // namespace

std::vector<Violation> FindViolations(const Json& schema, const Json& value,
                                      const std::string& path) {
  SchemaChecker checker;
  checker.Check(schema, value, path);
  return std::move(checker.violations);
}

std::vector<std::string> PruneUnknown(const Json& schema, Json& object) {
  std::vector<std::string> pruned;
  PruneAt(schema, object, "", &pruned);
  return pruned;
}

void SetDefaults(const Json& schema, Json& value) {
  if (value.is_array()) {
    const auto items = schema.find("items");
    if (items == schema.end()) return;
    for (Json& item : value) SetDefaults(*items, item);
    return;
  }
  if (!value.is_object()) return;
  for (auto it = value.begin(); it != value.end();) {
    const Json* field = SchemaOfField(schema, it.key());
    const bool absent = field != nullptr && it->is_null() && !HasFlag(*field, "nullable");
    it = absent ? value.erase(it) : std::next(it);
  }
  for (const auto& [name, property] : PropertiesOf(schema).items()) {
    const auto preset = property.find("default");
    if (preset != property.end() && !value.contains(name)) value[name] = *preset;
  }
  for (auto it = value.begin(); it != value.end(); ++it) {
    if (const Json* field = SchemaOfField(schema, it.key())) SetDefaults(*field, *it);
  }
}

bool IsIntOrString(const Json& schema) { return HasFlag(schema, "x-kubernetes-int-or-string"); }

}  // namespace ringmaster::api
