#include "operator/cli/yaml_text.h"

#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;

// Letters, digits and some signs, beginning with a letter and not a word that means something else.
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

// A JSON string is a YAML double-quoted scalar.
std::string Scalar(const Json& value) {
  if (value.is_string() && IsPlain(value.get_ref<const std::string&>())) return value;
  return value.dump();
}

bool IsBlock(const Json& value) { return value.is_structured() && !value.empty(); }

void Write(const Json& value, int indent, bool in_list, std::string* out) {
  const std::string margin(indent, ' ');
  bool first = true;
  auto begin = [&] {
    if (!(first && in_list)) *out += margin;
    first = false;
  };
  if (value.is_array()) {
    for (const Json& item : value) {
      begin();
      *out += "- ";
      if (IsBlock(item))
        Write(item, indent + 2, true, out);
      else
        *out += Scalar(item) + "\n";
    }
    return;
  }
  for (const auto& [key, member] : value.items()) {
    begin();
    *out += Scalar(Json(key)) + ":";
    if (!IsBlock(member)) {
      *out += " " + Scalar(member) + "\n";
      continue;
    }
    *out += "\n";
    Write(member, indent + (member.is_array() ? 0 : 2), false, out);
  }
}

}  // namespace

std::string ToYaml(const Json& value) {
  if (!IsBlock(value)) return Scalar(value) + "\n";
  std::string out;
  Write(value, 0, false, &out);
  return out;
}

}  // namespace ringmaster::cli
