// Fields of objects as the API server gives them, as text: what isn't there, or is something else,
// reads as "".
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace ringmaster::cli {

// `pointer`: "/metadata/name".
inline std::string Text(const nlohmann::json& object, const char* pointer) {
  const nlohmann::json::json_pointer at(pointer);
  return object.contains(at) && object[at].is_string() ? object[at].get<std::string>() : "";
}

// `map`: "labels" or "annotations". Their names hold slashes.
inline std::string Metadata(const nlohmann::json& object, const char* map, const char* name) {
  const auto at = nlohmann::json::json_pointer("/metadata") / map / name;
  return object.contains(at) && object[at].is_string() ? object[at].get<std::string>() : "";
}

}  // namespace ringmaster::cli
