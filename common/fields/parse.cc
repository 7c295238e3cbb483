#include "common/fields/parse.h"

#include <nlohmann/json.hpp>

#include "common/fields/parse_limits.h"

namespace ringmaster::fields {
namespace {

constexpr std::size_t kShown = 60;

}  // namespace

tl::expected<nlohmann::json, std::string> Parse(std::string_view text, const char* what,
                                                const ParseLimits& limits) {
  const std::string excess = Excess(text, limits);
  if (!excess.empty()) return tl::make_unexpected(std::string(what) + ": " + excess);
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded()) return json;
  return tl::make_unexpected(std::string(what) +
                             ": not JSON: " + std::string(text.substr(0, kShown)));
}

nlohmann::json ParseOrDiscard(std::string_view text, const ParseLimits& limits) {
  if (!Excess(text, limits).empty()) return nlohmann::json(nlohmann::json::value_t::discarded);
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace ringmaster::fields
