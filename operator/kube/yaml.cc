#include "operator/kube/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

namespace ringmaster::kube {
namespace {

using Json = nlohmann::json;

// A parsed value takes some hundred bytes, and an object in Kubernetes has at most 1.5 MiB of JSON.
constexpr std::size_t kMostText = 4u << 20;
constexpr std::size_t kMostDepth = 64;
// These limits count the contents of aliases at each place.
constexpr std::size_t kMostNodes = 1'000'000;
constexpr std::size_t kMostBytes = 16u << 20;

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
      // Leading zeros mean octal in YAML 1.1; people who write 0644 for a file mode mean that.
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

// Checks the size and depth of a text before anything is built from it.
class Gauge final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    // The parser would loop for ever at a token that can't begin a document, such as ",".
    if (mark.pos == document_) throw YAML::ParserException(mark, "no value can begin here");
    document_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { Count(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { Count(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string&) override {
    Count(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    Descend(mark);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    Descend(mark);
  }
  void OnMapEnd() override { --depth_; }

 private:
  void Count(const YAML::Mark& mark) {
    if (++nodes_ > kMostNodes) {
      throw YAML::ParserException(mark, "more than " + std::to_string(kMostNodes) + " values");
    }
  }
  void Descend(const YAML::Mark& mark) {
    Count(mark);
    if (++depth_ > kMostDepth) {
      throw YAML::ParserException(mark,
                                  "nested deeper than " + std::to_string(kMostDepth) + " levels");
    }
  }

  int document_ = -1;
  std::size_t depth_ = 0, nodes_ = 0;
};

void CheckSize(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Gauge gauge;
  while (parser.HandleNextDocument(gauge)) {
  }
}

// Replaces each alias by its contents. An alias may contain itself, and a few lines of aliases may
// expand to more than any memory holds, so depth and size are limited.
class Converter {
 public:
  Json Convert(const YAML::Node& node) {
    Charge(node);
    ++depth_;
    Json value = ValueOf(node);
    --depth_;
    return value;
  }

 private:
  void Charge(const YAML::Node& node) {
    const auto refuse = [&](const std::string& why) {
      throw YAML::ParserException(node.Mark(), why);
    };
    if (depth_ >= kMostDepth) {
      refuse("nested deeper than " + std::to_string(kMostDepth) +
             " levels; does an alias stand within what it names?");
    }
    if (node.IsScalar()) bytes_ += node.Scalar().size();
    if (++nodes_ > kMostNodes || bytes_ > kMostBytes) {
      refuse("with its aliases the text is larger than " + std::to_string(kMostNodes) +
             " values or " + std::to_string(kMostBytes >> 20) + " MiB");
    }
  }

  Json ValueOf(const YAML::Node& node) {
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return nullptr;
      case YAML::NodeType::Scalar:
        // yaml-cpp tags plain scalars "?" and quoted ones "!".
        if (node.Tag() == "?" || node.Tag().empty()) return PlainScalar(node.Scalar());
        return node.Scalar();
      case YAML::NodeType::Sequence:
        return List(node);
      case YAML::NodeType::Map:
        return Map(node);
    }
    return nullptr;
  }

  Json List(const YAML::Node& node) {
    Json list = Json::array();
    for (const auto& item : node) list.push_back(Convert(item));
    return list;
  }

  Json Map(const YAML::Node& node) {
    Json map = Json::object();
    Json merged = Json::object();  // by "<<": a key of the map itself wins, wherever it stands
    for (const auto& item : node) {
      const std::string key = item.first.Scalar();
      bytes_ += key.size();
      if (key == "<<" && IsMergeable(item.second)) {
        const Json maps =
            item.second.IsMap() ? Json::array({Convert(item.second)}) : Convert(item.second);
        for (const Json& one : maps) merged.insert(one.begin(), one.end());  // the first one wins
        continue;
      }
      if (map.contains(key)) {
        throw YAML::ParserException(item.first.Mark(), "key \"" + key + "\" already set in map");
      }
      map[key] = Convert(item.second);
    }
    map.insert(merged.begin(), merged.end());
    return map;
  }

  // A map, or a list of maps.
  static bool IsMergeable(const YAML::Node& node) {
    if (node.IsMap()) return true;
    return node.IsSequence() && node.size() > 0 &&
           std::all_of(node.begin(), node.end(), [](const auto& one) { return one.IsMap(); });
  }

  std::size_t depth_ = 0, nodes_ = 0, bytes_ = 0;
};

}  // namespace

tl::expected<std::vector<Json>, std::string> YamlToJson(std::string_view text) {
  if (text.size() > kMostText) {
    return tl::unexpected(std::to_string(text.size()) + " bytes of YAML, at most " +
                          std::to_string(kMostText) + " are allowed");
  }
  std::vector<Json> documents;
  Converter converter;
  try {
    const std::string whole(text);
    CheckSize(whole);
    for (const YAML::Node& node : YAML::LoadAll(whole)) {
      Json document = converter.Convert(node);
      if (!document.is_null()) documents.push_back(std::move(document));
    }
  } catch (const YAML::Exception& e) {
    return tl::unexpected("line " + std::to_string(e.mark.line + 1) + ", column " +
                          std::to_string(e.mark.column + 1) + ": " + e.msg);
  }
  return documents;
}

}  // namespace ringmaster::kube
