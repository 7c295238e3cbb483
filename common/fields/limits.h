// How long and how deeply nested a text may be that is given to a parser.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringmaster::fields {

// Objects of Kubernetes nest about twenty deep, our messages six.
struct Limits {
  std::size_t bytes = 16u << 20;
  std::size_t depth = 64;
};

// Empty, or which limit the text breaks.
std::string Excess(std::string_view text, const Limits& limits);

}  // namespace ringmaster::fields
