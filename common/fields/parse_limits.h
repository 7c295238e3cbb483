// Limits on the length and the nesting of a text before it is given to a parser.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringmaster::fields {

// Objects of Kubernetes nest about twenty deep, our messages six.
struct ParseLimits {
  std::size_t bytes = 16u << 20;
  std::size_t depth = 64;
};

// Empty, or a text for people that says which limit `text` breaks.
std::string Excess(std::string_view text, const ParseLimits& limits);

}  // namespace ringmaster::fields
