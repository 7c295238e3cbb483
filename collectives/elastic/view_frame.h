// A `view` frame's view, as the engine needs it (docs/contracts.md, section 3).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "collectives/engine/view.h"

namespace ringmaster::elastic {

// RM_ERR_INVALID names the field that is missing or wrong, its value and what is allowed.
Status ParseView(const nlohmann::json& json, int self, engine::View* view);

}  // namespace ringmaster::elastic
