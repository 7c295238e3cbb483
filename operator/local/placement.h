// Where a pod goes in local mode. Pure.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::local {

// "1500m", "2", "4Gi" as a number of the base unit.
double ParseQuantity(const kube::Json& quantity);

// The node with the most free CPU among those that fit; else why not, as a scheduler says it:
// "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
tl::expected<std::string, std::string> Place(const kube::Json& pod,
                                             const std::vector<kube::Json>& nodes,
                                             const std::vector<kube::Json>& pods);

}  // namespace ringmaster::local
