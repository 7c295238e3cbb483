#include "operator/api/structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "operator/api/reader.h"

namespace ringmaster::api {
namespace {

// More names than this help nobody.
constexpr std::size_t kNamesToList = 16;

bool Flag(const Json& schema, const char* name) { return schema.value(name, false); }
bool IsIntOrString(const Json& schema) { return Flag(schema, "x-kubernetes-int-or-string"); }

// std::regex recurses with the length of the text, and nothing that is this long fits a pattern of
// the schema.
constexpr std::size_t kLongestMatch = 1024;

bool Matches(const std::string& text, const std::string& pattern) {
  if (text.size() > kLongestMatch) return false;
  // The schema has a handful of patterns; compiling one costs more than all else here.
  static thread_local std::map<std::string, std::regex> compiled;
  auto at = compiled.find(pattern);
  if (at == compiled.end()) at = compiled.emplace(pattern, std::regex(pattern)).first;
  return std::regex_search(text, at->second);
}

std::size_t Characters(const std::string& utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string Wanted(const Json& schema, const Json& value) {
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

bool HasType(const Json& schema, const Json& value) {
  if (IsIntOrString(schema)) return value.is_number_integer() || value.is_string();
  const std::string type = schema.value("type", "");
  if (type == "integer") return IsWhole(value);
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  return type.empty() || value.is_string();
}

class Checker {
 public:
  explicit Checker(FieldErrors* errors) : errors_(errors) {}

  void Check(const Json& schema, const Json& value, const std::string& path) {
    if (!HasType(schema, value)) {
      return Error(path, fmt::format("{} is {}: must be {}", Show(value), TypeName(value),
                                     Wanted(schema, value)));
    }
    if (value.is_number()) CheckInteger(schema, value, path);
    if (value.is_string()) CheckString(schema, value.get_ref<const std::string&>(), path);
    if (value.is_array()) CheckList(schema, value, path);
    if (value.is_object()) CheckObject(schema, value, path);
  }

 private:
  void Error(const std::string& path, std::string message) {
    errors_->push_back({path, std::move(message)});
  }

  void CheckInteger(const Json& schema, const Json& value, const std::string& path) {
    if (!schema.contains("minimum") || !schema.contains("maximum")) return;
    const std::int64_t low = schema["minimum"], high = schema["maximum"];
    if (!IsWithin(value, low, high)) {
      Error(path, fmt::format("{} is out of range: must be from {} to {}", Show(value), low, high));
    }
  }

  void CheckString(const Json& schema, const std::string& text, const std::string& path) {
    if (const auto allowed = schema.find("enum"); allowed != schema.end()) {
      const auto words = allowed->get<std::vector<std::string>>();
      if (std::find(words.begin(), words.end(), text) == words.end()) {
        Error(path, fmt::format("{} is not allowed: must be one of {}", Show(text),
                                fmt::join(words, ", ")));
      }
    }
    const std::size_t length = Characters(text);
    if (length < schema.value("minLength", std::size_t{0})) {
      Error(path, "\"\" is empty: it needs a value");
    }
    if (const auto most = schema.find("maxLength");
        most != schema.end() && length > most->get<std::size_t>()) {
      Error(path, fmt::format("{} is too long: at most {} characters", Show(text), most->dump()));
    }
    if (const auto pattern = schema.find("pattern");
        pattern != schema.end() && !Matches(text, pattern->get<std::string>())) {
      Error(path,
            IsIntOrString(schema)
                ? fmt::format("{} is not a quantity: must be such as 1, 500m or 2Gi", Show(text))
                : fmt::format("{} must match {}", Show(text), pattern->get<std::string>()));
    }
    static const std::string kTime =
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[-+][0-9]{2}:["
        "0-9]{2})$";
    if (schema.value("format", "") == "date-time" && !Matches(text, kTime)) {
      Error(path, fmt::format("{} is no time: must be such as 2026-01-31T12:00:00Z", Show(text)));
    }
  }

  void CheckList(const Json& schema, const Json& list, const std::string& path) {
    if (const auto most = schema.find("maxItems");
        most != schema.end() && list.size() > most->get<std::size_t>()) {
      return Error(
          path, fmt::format("has {} elements: at most {} are allowed", list.size(), most->dump()));
    }
    if (list.size() < schema.value("minItems", std::size_t{0})) {
      Error(path, fmt::format("has {} elements: it needs at least {}", list.size(),
                              schema["minItems"].dump()));
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      Check(schema.at("items"), list[i], fmt::format("{}[{}]", path, i));
    }
    CheckTwins(schema, list, path);
  }

  // Elements that are the same, or are called the same.
  void CheckTwins(const Json& schema, const Json& list, const std::string& path) {
    const std::string kind = schema.value("x-kubernetes-list-type", "");
    if (kind != "set" && kind != "map") return;
    const Json keys = schema.value("x-kubernetes-list-map-keys", Json::array());
    const Json properties = schema.at("items").value("properties", Json::object());
    std::set<Json> seen;
    for (std::size_t i = 0; i < list.size(); ++i) {
      Json identity = list[i];
      if (kind == "map") {
        if (!list[i].is_object()) continue;
        identity = Json::object();
        for (const std::string key : keys) {
          const Json preset = properties.value(key, Json::object()).value("default", Json());
          identity[key] = list[i].contains(key) ? list[i][key] : preset;
        }
      }
      if (seen.insert(identity).second) continue;
      Error(fmt::format("{}[{}]", path, i), fmt::format("{} is there twice", Show(identity)));
    }
  }

  void CheckObject(const Json& schema, const Json& object, const std::string& path) {
    const auto at = [&](const std::string& name) { return path + "." + name; };
    for (const std::string name : schema.value("required", Json::array())) {
      if (object.value(name, Json()).is_null()) Error(at(name), "is required");
    }
    if (const auto most = schema.find("maxProperties");
        most != schema.end() && object.size() > most->get<std::size_t>()) {
      Error(path,
            fmt::format("has {} entries: at most {} are allowed", object.size(), most->dump()));
    }
    const auto additional = schema.find("additionalProperties");
    static const Json kNone = Json::object();
    const auto known = schema.find("properties");
    const Json& properties = known == schema.end() ? kNone : *known;
    for (const auto& [name, value] : object.items()) {
      if (value.is_null() && (additional != schema.end() || properties.contains(name))) {
        continue;  // as if it weren't there
      }
      if (const auto property = properties.find(name); property != properties.end()) {
        Check(*property, value, at(name));
      } else if (additional != schema.end()) {
        Check(*additional, value, at(name));
      } else if (!Flag(schema, "x-kubernetes-preserve-unknown-fields")) {
        Unknown(properties, name, at(name));
      }
    }
  }

  void Unknown(const Json& properties, const std::string& name, const std::string& path) {
    std::vector<std::string> names;
    for (const auto& [known, schema] : properties.items()) names.push_back(known);
    const std::string guess = DidYouMean(name, names);
    if (!guess.empty()) {
      Error(path, fmt::format("unknown field; did you mean \"{}\"?", guess));
    } else if (names.size() <= kNamesToList) {
      Error(path, fmt::format("unknown field; known here: {}", fmt::join(names, ", ")));
    } else {
      Error(path, "unknown field");
    }
  }

  FieldErrors* const errors_;
};

}  // namespace

void CheckStructure(const Json& schema, const Json& value, const std::string& path,
                    FieldErrors* errors) {
  Checker(errors).Check(schema, value, path);
}

}  // namespace ringmaster::api
