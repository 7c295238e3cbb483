#include "operator/app/setting_texts.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "common/fields/parse.h"

namespace ringmaster::app {
namespace {

using Json = nlohmann::json;

constexpr char kLower[] = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr char kUpper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

bool HasOnly(const std::string& text, const std::string& characters) {
  return text.find_first_not_of(characters) == std::string::npos;
}

bool IsHostPort(const std::string& text) { return ParseHostPort(text).has_value(); }

bool IsUnixSocket(const std::string& text) { return text.starts_with("unix:") && text.size() > 5; }

bool IsGrpcListen(const std::string& text) { return IsUnixSocket(text) || IsHostPort(text); }

bool IsGrpcTarget(const std::string& text) {
  const auto parsed = ParseHostPort(text);
  return IsUnixSocket(text) || (parsed && parsed->port != 0);
}

bool HasNoBlanks(const std::string& text) {
  return text.find_first_of(" \t\r\n") == std::string::npos;
}

bool IsDnsLabel(const std::string& text) {
  return !text.empty() && text.size() <= 63 && HasOnly(text, std::string(kLower) + "-") &&
         !text.starts_with('-') && !text.ends_with('-');
}

bool IsObjectName(const std::string& text) {
  const auto labels = Split(text, '.');
  return text.size() <= 253 && std::all_of(labels.begin(), labels.end(), IsDnsLabel);
}

bool AreTaintKeys(const std::string& text) {
  const auto keys = Split(text, ',');
  return std::all_of(keys.begin(), keys.end(), [](const std::string& key) {
    return !key.empty() && HasOnly(key, std::string(kLower) + kUpper + "-_./");
  });
}

bool AreNamespaces(const std::string& text) {
  const auto names = Split(text, ',');
  return std::all_of(names.begin(), names.end(), IsDnsLabel) &&
         std::set(names.begin(), names.end()).size() == names.size();
}

bool IsQuantity(const Json& value) { return value.is_string() || value.is_number(); }

// Accepts {"requests": {...}, "limits": {...}}.
bool AreResources(const std::string& text) {
  const Json resources = fields::ParseOrDiscard(text);
  if (!resources.is_object()) return false;
  for (const auto& [key, quantities] : resources.items()) {
    if ((key != "requests" && key != "limits") || !quantities.is_object()) return false;
    if (!std::all_of(quantities.begin(), quantities.end(), IsQuantity)) return false;
  }
  return true;
}

}  // namespace

const TextRule kHostPortText = {"host:port, port 0 to 65535 (0: any free one)", IsHostPort};
const TextRule kGrpcListenText = {"host:port, port 0 to 65535 (0: any free one), or unix:/path",
                                  IsGrpcListen};
const TextRule kGrpcTargetText = {"host:port, port 1 to 65535, or unix:/path", IsGrpcTarget};
const TextRule kImageText = {"a text that is not empty and has no blanks", HasNoBlanks};
const TextRule kNamespaceText = {
    "up to 63 lower case letters, digits and '-', no '-' at either end", IsDnsLabel};
const TextRule kNamespacesText = {
    "names of namespaces with commas between them, each once and of up to 63 lower case letters, "
    "digits and '-', no '-' at either end",
    AreNamespaces};
const TextRule kObjectNameText = {
    "up to 253 lower case letters, digits, '-' and '.', as objects are named", IsObjectName};
const TextRule kTaintKeysText = {
    "keys of taints with commas between them, without values and effects", AreTaintKeys};
const TextRule kResourcesText = {
    R"(a text of JSON, such as '{"requests": {"cpu": "50m"}, "limits": {}}')", AreResources};

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0, end = 0;
  while ((end = text.find(separator, begin)) != std::string::npos) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::vector<std::string> Names(const std::string& text) {
  return text.empty() ? std::vector<std::string>() : Split(text, ',');
}

tl::expected<HostPort, std::string> ParseHostPort(const std::string& text) {
  const auto wrong = [] {
    return tl::unexpected(std::string("allowed: ") + kHostPortText.allowed);
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong();
  HostPort parsed;
  parsed.host = text.substr(0, colon);
  const bool bracketed = parsed.host.starts_with('[') && parsed.host.ends_with(']');
  if (bracketed) parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  if (!bracketed && parsed.host.find(':') != std::string::npos) return wrong();
  if (parsed.host.empty()) return wrong();
  const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(begin, end, parsed.port);
  if (error != std::errc() || stopped != end || parsed.port < 0 || parsed.port > 65535) {
    return wrong();
  }
  return parsed;
}

}  // namespace ringmaster::app
