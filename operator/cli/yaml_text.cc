#include "operator/cli/yaml_text.h"

#include <yaml-cpp/yaml.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;

// Letters, digits and some signs, beginning with a letter, and not a word with a special meaning.
bool IsPlain(std::string_view text) {
  if (text.empty() || !std::isalpha(static_cast<unsigned char>(text[0]))) return false;
  for (unsigned char c : text)
    if (!std::isalnum(c) && std::string_view("-_./").find(c) == std::string_view::npos)
      return false;
  for (std::string_view word : {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}) {
    if (word.size() != text.size()) continue;
    bool same = true;
    for (size_t i = 0; i < word.size(); ++i)
      same = same && std::tolower(static_cast<unsigned char>(text[i])) == word[i];
    if (same) return false;
  }
  return true;
}

void Emit(const Json& value, YAML::Emitter& out) {
  if (value.is_structured() && value.empty()) out << YAML::Flow;
  switch (value.type()) {
    case Json::value_t::object:
      out << YAML::BeginMap;
      for (const auto& [key, member] : value.items()) {
        out << YAML::Key;
        Emit(Json(key), out);
        out << YAML::Value;
        Emit(member, out);
      }
      out << YAML::EndMap;
      break;
    case Json::value_t::array:
      out << YAML::BeginSeq;
      for (const Json& item : value) Emit(item, out);
      out << YAML::EndSeq;
      break;
    case Json::value_t::string:
      // The emitter itself quotes only what could not be parsed at all: "1.5" would come back as a
      // number.
      if (!IsPlain(value.get_ref<const std::string&>())) out << YAML::DoubleQuoted;
      out << value.get_ref<const std::string&>();
      break;
    case Json::value_t::null:
      out << YAML::Null;
      break;
    default:
      out << value.dump();
  }
}

}  // namespace

std::string ToYaml(const Json& value) {
  YAML::Emitter out;
  out.SetNullFormat(YAML::LowerNull);
  Emit(value, out);
  return std::string(out.c_str()) + "\n";
}

}  // namespace ringmaster::cli
