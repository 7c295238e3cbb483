// Reads JSON of which nothing is certain: what isn't there, or is of another type, reads as
// nothing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace ringmaster::controllers {

inline const nlohmann::json& At(const nlohmann::json& object, const char* name) {
  static const nlohmann::json kNothing;
  if (!object.is_object()) return kNothing;
  const auto at = object.find(name);
  return at == object.end() ? kNothing : *at;
}

inline std::string Text(const nlohmann::json& object, const char* name) {
  const nlohmann::json& value = At(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

}  // namespace ringmaster::controllers
