// Parses what an API server sends, without metadata.managedFields: that is half of an object,
// nobody here reads it, and nothing is built of it.
//
// Nothing here throws.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "common/fields/parse.h"

namespace ringmaster::fields {

// Parses an object, a list of objects or an event of a watch; otherwise it does what ParseOrDiscard
// does.
nlohmann::json ParseObjectOrDiscard(std::string_view text, const Limits& limits = {});

}  // namespace ringmaster::fields
