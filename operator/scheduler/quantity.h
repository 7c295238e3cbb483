// Kubernetes quantities ("1500m", "2", "4Gi") as numbers of the base unit. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace ringmaster::scheduler {

// Returns 0 for an invalid quantity: the API server has refused those already.
double ParseQuantity(const nlohmann::json& quantity);

}  // namespace ringmaster::scheduler
