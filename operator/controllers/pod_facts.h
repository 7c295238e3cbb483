// Reads from a pod object of the API server what the planner needs. Pure functions on JSON.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/planner/proof.h"
#include "operator/planner/snapshot.h"

namespace ringmaster::controllers {

// The index is -1 if the pod is not a worker pod of ours.
planner::PodFacts ReadPod(const nlohmann::json& pod);
// What the annotation says that was written by WriteAnnounced: reasons by node.
std::map<std::string, std::string> ReadAnnounced(const std::string& text);
// As PodFacts::leaving() has it, for less: the pod is being deleted, or is to be drained.
bool IsLeaving(const nlohmann::json& pod);
// Sets proven_dead and proof of the pod from what is known of its node.
void Prove(planner::PodFacts* pod, const planner::NodeEvidence& evidence);

}  // namespace ringmaster::controllers
