#include "operator/kube/selectors.h"

#include <algorithm>

namespace ringmaster::kube {
namespace {

std::string Trim(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t") - begin + 1));
}

// Splits at each `separator` outside parentheses.
std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == separator && depth == 0)) {
      parts.push_back(Trim(text.substr(begin, i - begin)));
      begin = i + 1;
    } else if (text[i] == '(') {
      ++depth;
    } else if (text[i] == ')') {
      --depth;
    }
  }
  return parts;
}

bool GoodKey(const std::string& key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '/';
  });
}

std::string ScalarText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "";
  return value.dump();
}

}  // namespace

tl::expected<LabelSelector, std::string> LabelSelector::Parse(std::string_view text) {
  LabelSelector selector;
  if (Trim(text).empty()) return selector;
  for (const std::string& part : Split(text, ',')) {
    Requirement r;
    size_t paren = part.find('(');
    if (paren != std::string::npos) {
      size_t space = part.find(' ');
      std::string op = space < paren ? Trim(part.substr(space, paren - space)) : "";
      if ((op != "in" && op != "notin") || part.back() != ')') {
        return tl::unexpected("unable to parse requirement: \"" + part + "\"");
      }
      r = {part.substr(0, space), op == "in" ? Op::kIn : Op::kNotIn,
           Split(std::string_view(part).substr(paren + 1, part.size() - paren - 2), ',')};
    } else if (size_t at = part.find("!="); at != std::string::npos) {
      r = {Trim(part.substr(0, at)), Op::kNotIn, {Trim(part.substr(at + 2))}};
    } else if (at = part.find('='); at != std::string::npos) {
      size_t value = part.compare(at, 2, "==") == 0 ? at + 2 : at + 1;
      r = {Trim(part.substr(0, at)), Op::kIn, {Trim(part.substr(value))}};
    } else if (!part.empty() && part[0] == '!') {
      r = {Trim(part.substr(1)), Op::kNotExists, {}};
    } else {
      r = {part, Op::kExists, {}};
    }
    if (!GoodKey(r.key)) return tl::unexpected("unable to parse requirement: \"" + part + "\"");
    selector.requirements_.push_back(std::move(r));
  }
  return selector;
}

tl::expected<LabelSelector, std::string> LabelSelector::FromJson(const Json& selector) {
  LabelSelector result;
  if (!selector.is_object())
    return tl::unexpected<std::string>("a label selector must be an object");
  const Json labels = selector.value("matchLabels", Json::object());
  for (const auto& [key, value] : labels.items()) {
    result.requirements_.push_back({key, Op::kIn, {ScalarText(value)}});
  }
  for (const Json& e : selector.value("matchExpressions", Json::array())) {
    Requirement r{e.value("key", ""), Op::kIn, {}};
    for (const Json& value : e.value("values", Json::array()))
      r.values.push_back(ScalarText(value));
    std::string op = e.value("operator", "");
    if (op == "NotIn")
      r.op = Op::kNotIn;
    else if (op == "Exists")
      r.op = Op::kExists;
    else if (op == "DoesNotExist")
      r.op = Op::kNotExists;
    else if (op != "In")
      return tl::unexpected("\"" + op + "\" is not a valid selector operator");
    result.requirements_.push_back(std::move(r));
  }
  return result;
}

bool LabelSelector::MatchesOne(const Requirement& r, const Json& labels) const {
  auto it = labels.find(r.key);
  bool present = it != labels.end();
  bool in =
      present && std::find(r.values.begin(), r.values.end(), ScalarText(*it)) != r.values.end();
  switch (r.op) {
    case Op::kIn:
      return in;
    case Op::kNotIn:
      return !in;
    case Op::kExists:
      return present;
    case Op::kNotExists:
      return !present;
  }
  return false;
}

bool LabelSelector::Matches(const Json& object) const {
  if (requirements_.empty()) return true;
  static const Json kNone = Json::object();
  const Json* labels = &kNone;
  if (auto meta = object.find("metadata"); meta != object.end()) {
    if (auto it = meta->find("labels"); it != meta->end() && it->is_object()) labels = &*it;
  }
  return std::all_of(requirements_.begin(), requirements_.end(),
                     [&](const Requirement& r) { return MatchesOne(r, *labels); });
}

tl::expected<FieldSelector, std::string> FieldSelector::Parse(
    std::string_view text, const std::vector<std::string>& allowed) {
  FieldSelector selector;
  if (Trim(text).empty()) return selector;
  for (const std::string& part : Split(text, ',')) {
    size_t at = part.find('=');
    if (at == std::string::npos || at == 0) {
      return tl::unexpected("invalid field selector: \"" + part + "\"; can't understand it");
    }
    bool equal = part[at - 1] != '!';
    std::string path = Trim(part.substr(0, equal ? at : at - 1));
    size_t value = part.compare(at, 2, "==") == 0 ? at + 2 : at + 1;
    if (std::find(allowed.begin(), allowed.end(), path) == allowed.end()) {
      return tl::unexpected("field label not supported: " + path);
    }
    selector.requirements_.push_back({Split(path, '.'), Trim(part.substr(value)), equal});
  }
  return selector;
}

bool FieldSelector::Matches(const Json& object) const {
  for (const Requirement& r : requirements_) {
    const Json* at = &object;
    for (const std::string& key : r.path) {
      at = at->is_object() && at->contains(key) ? &(*at)[key] : nullptr;
      if (at == nullptr) break;
    }
    std::string value = at ? ScalarText(*at) : "";
    if ((value == r.value) != r.equal) return false;
  }
  return true;
}

}  // namespace ringmaster::kube
