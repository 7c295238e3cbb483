#include "operator/api/object_key.h"

#include "common/fields/fields.h"

namespace ringmaster::api {

std::string KeyText(std::string_view ns, std::string_view name) {
  std::string text(ns);
  text += '/';
  text += name;
  return text;
}

std::string KeyOf(const nlohmann::json& object) {
  const nlohmann::json& metadata = fields::Member(object, "metadata");
  return KeyText(fields::Text(metadata, "namespace"), fields::Text(metadata, "name"));
}

ObjectKey ParseKey(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {std::string(text), ""};
  return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

}  // namespace ringmaster::api
