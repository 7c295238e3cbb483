#include "operator/planner/texts.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::planner {

std::string Plural(std::size_t n, const std::string& noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string Listed(const std::vector<std::string>& texts, const char* between) {
  constexpr std::size_t kMost = 4;
  const std::size_t shown = std::min(texts.size(), kMost);
  std::string text = fmt::format("{}", fmt::join(texts.begin(), texts.begin() + shown, between));
  if (shown < texts.size()) text += fmt::format(" and {} more", texts.size() - shown);
  return text;
}

std::string Names(const std::vector<std::string>& names) { return Listed(names, ", "); }

bool Contains(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

}  // namespace ringmaster::planner
