// Parses JSON that another program has written. A text that is too long or nested too deeply is
// refused before a value is built: copying, comparing and printing a value are recursive, so a text
// of some thousand brackets would end the process.
//
// Nothing here throws.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "common/fields/parse_limits.h"

namespace ringmaster::fields {

// The error begins with `what`.
tl::expected<nlohmann::json, std::string> Parse(std::string_view text, const char* what,
                                                const ParseLimits& limits = {});

// The same for callers that need no reason: after an error the value is a discarded one, which has
// no type (`is_discarded()`).
nlohmann::json ParseOrDiscard(std::string_view text, const ParseLimits& limits = {});

}  // namespace ringmaster::fields
