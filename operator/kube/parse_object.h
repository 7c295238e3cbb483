// Parses what an API server sends, without building values that nobody here reads:
// metadata.managedFields, which are half of an object, and what the caller names.
//
// Nothing here throws.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "common/fields/parse_limits.h"
#include "operator/kube/unread.h"

namespace ringmaster::kube {

// Parses an object, a list of objects or an event of a watch; otherwise it does what ParseOrDiscard
// does.
nlohmann::json ParseObjectOrDiscard(std::string_view text, const fields::ParseLimits& limits = {},
                                    Unread unread = {});

}  // namespace ringmaster::kube
