#include "common/fields/parse_limits.h"

namespace ringmaster::fields {
namespace {

// Whether a parser would go deeper than `limit` in this text. This scan sees the same nesting as a
// parser up to the first syntax error, and there the parser stops.
bool IsDeeperThan(std::string_view text, std::size_t limit) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"':
        for (++i; i < text.size() && text[i] != '"'; ++i) {
          if (text[i] == '\\') ++i;
        }
        break;
      case '[':
      case '{':
        if (++depth > limit) return true;
        break;
      case ']':
      case '}':
        if (depth > 0) --depth;
        break;
      default:
        break;
    }
  }
  return false;
}

}  // namespace

std::string Excess(std::string_view text, const ParseLimits& limits) {
  if (text.size() > limits.bytes) {
    return std::to_string(text.size()) + " bytes, at most " + std::to_string(limits.bytes) +
           " are allowed";
  }
  if (IsDeeperThan(text, limits.depth)) {
    return "nested deeper than " + std::to_string(limits.depth) + " levels";
  }
  return "";
}

}  // namespace ringmaster::fields
