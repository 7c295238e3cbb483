// Kubernetes quantities ("1500m", "2", "4Gi") as numbers of the base unit. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace ringmaster::scheduler {

// 0 for what is no quantity: the API server has refused that already.
double ParseQuantity(const nlohmann::json& quantity);

}  // namespace ringmaster::scheduler
