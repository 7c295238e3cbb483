// Kubernetes quantities ("1500m", "2", "4Gi") as numbers of the base unit. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace ringmaster::scheduler {

// Returns 0 for an invalid quantity, which the API server has refused already, and for one below 0,
// which it lets pass where it knows nothing of the field. May be infinite.
double ParseQuantity(const nlohmann::json& quantity);

}  // namespace ringmaster::scheduler
