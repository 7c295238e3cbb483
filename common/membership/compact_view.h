// A view as text without field names, in which runs of entries refer to another view (`base`) that
// the reader has. Pods and ranks that stay keep their order, so a change takes few bytes whatever
// the size of the view.
//
// Pure. The plain form (view_json.h) is the one that people and older programs read.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "common/membership/view.h"

namespace ringmaster::membership {

// Null `base`: all entries are written.
nlohmann::json CompactView(const View& view, const View* base);

// Makes the plain form of a compact one. `base`: the plain form of the same view as above, or null.
// False: a run refers to entries that `base` doesn't have. What is wrong otherwise, the plain
// form's reader reports.
bool ExpandView(nlohmann::json* view, const nlohmann::json& base);

}  // namespace ringmaster::membership
