// Reads from a pod object of the API server what the planner needs. Pure functions on JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "operator/planner/proof.h"
#include "operator/planner/snapshot.h"

namespace ringmaster::controllers {

// The index is -1 if the pod is not a worker pod of ours.
planner::PodFacts ReadPod(const nlohmann::json& pod);
// The pod's condition that says it is about to be evicted or preempted; null: it is not.
const nlohmann::json* DisruptionOf(const nlohmann::json& pod);
// Sets proven_dead and proof of the pod from what is known of its node.
void Prove(planner::PodFacts* pod, const planner::NodeEvidence& evidence);

}  // namespace ringmaster::controllers
