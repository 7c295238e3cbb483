// Parses what an API server sends, without building values of metadata.managedFields: they are half
// of an object, and nobody here reads them.
//
// Nothing here throws.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "common/fields/parse.h"

namespace ringmaster::fields {

// Parses an object, a list of objects or an event of a watch; otherwise it does what ParseOrDiscard
// does.
nlohmann::json ParseObjectOrDiscard(std::string_view text, const ParseLimits& limits = {});

}  // namespace ringmaster::fields
