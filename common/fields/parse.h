// Parses JSON that somebody else has written. What is too long or nested too deep is refused before
// anything is built of it: to copy, compare or print a value is recursive, so a text of some
// thousand brackets would end the process.
//
// Nothing here throws.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace ringmaster::fields {

// Objects of Kubernetes nest about twenty deep, our messages six.
struct Limits {
  std::size_t bytes = 16u << 20;
  std::size_t depth = 64;
};

// The error begins with `what`.
tl::expected<nlohmann::json, std::string> Parse(std::string_view text, const char* what,
                                                const Limits& limits = {});

// The same where nobody asks why: a discarded value (`is_discarded()`, of no type).
nlohmann::json ParseOrDiscard(std::string_view text, const Limits& limits = {});

}  // namespace ringmaster::fields
