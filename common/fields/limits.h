// Whether a text may be given to a parser at all. Private to this folder.
#pragma once

#include <string>
#include <string_view>

#include "common/fields/parse.h"

namespace ringmaster::fields {

// Empty, or which limit the text breaks.
std::string Excess(std::string_view text, const Limits& limits);

}  // namespace ringmaster::fields
