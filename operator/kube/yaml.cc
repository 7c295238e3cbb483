#include "operator/kube/yaml.h"

#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace ringmaster::kube {
namespace {

using Json = nlohmann::json;

bool OneOf(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    if (text == word) return true;
  }
  return false;
}

Json PlainScalar(const std::string& text) {
  if (OneOf(text, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (OneOf(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) return true;
  if (OneOf(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) return false;
  char first = text[0] == '-' || text[0] == '+' ? text[1] : text[0];
  if (std::isdigit(static_cast<unsigned char>(first)) || first == '.') {
    char* end = nullptr;
    bool hex = text.find_first_of("xX") != std::string::npos;
    if (text.find_first_of(".eE") == std::string::npos || hex) {
      errno = 0;
      // Leading zeros would be octal in YAML 1.1; people who write 0644 for a file mode mean that.
      long long value = std::strtoll(text.c_str(), &end, 0);
      if (*end == '\0' && errno == 0) return value;
    }
    if (!hex) {
      double value = std::strtod(text.c_str(), &end);
      if (*end == '\0') return value;
    }
  }
  return text;
}

Json Convert(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Undefined:
    case YAML::NodeType::Null:
      return nullptr;
    case YAML::NodeType::Scalar:
      // yaml-cpp tags plain scalars "?" and quoted ones "!".
      if (node.Tag() == "?" || node.Tag().empty()) return PlainScalar(node.Scalar());
      return node.Scalar();
    case YAML::NodeType::Sequence: {
      Json list = Json::array();
      for (const auto& item : node) list.push_back(Convert(item));
      return list;
    }
    case YAML::NodeType::Map: {
      Json map = Json::object();
      for (const auto& item : node) {
        std::string key = item.first.Scalar();
        if (key == "<<" && item.second.IsMap()) {
          const Json defaults = Convert(item.second);
          for (const auto& [k, v] : defaults.items()) {
            if (!map.contains(k)) map[k] = v;
          }
          continue;
        }
        if (map.contains(key)) {
          throw YAML::ParserException(item.first.Mark(), "key \"" + key + "\" already set in map");
        }
        map[key] = Convert(item.second);
      }
      return map;
    }
  }
  return nullptr;
}

}  // namespace

tl::expected<std::vector<Json>, std::string> YamlToJson(std::string_view text) {
  std::vector<Json> documents;
  try {
    for (const YAML::Node& node : YAML::LoadAll(std::string(text))) {
      Json document = Convert(node);
      if (!document.is_null()) documents.push_back(std::move(document));
    }
  } catch (const YAML::Exception& e) {
    return tl::unexpected("line " + std::to_string(e.mark.line + 1) + ", column " +
                          std::to_string(e.mark.column + 1) + ": " + e.msg);
  }
  return documents;
}

}  // namespace ringmaster::kube
