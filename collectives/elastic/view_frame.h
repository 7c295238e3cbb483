// Reads the view of a `view` frame into what the engine needs (docs/contracts.md, section 3).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "collectives/engine/worker_view.h"

namespace ringmaster::elastic {

// RM_ERR_INVALID names the field that is missing or wrong, its value and what is allowed.
Status ParseView(const nlohmann::json& json, int self, engine::WorkerView* view);

}  // namespace ringmaster::elastic
