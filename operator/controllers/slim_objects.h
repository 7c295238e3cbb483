// Pods and nodes without what nobody here reads: thousands of them are kept. Pure functions on
// JSON; slimming twice changes nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace ringmaster::controllers {

// A pod of a HorovodJob: by its labels, or by its owner where somebody has taken those off.
bool IsWorkerPod(const nlohmann::json& pod);

// Of worker pods what pod_facts.h, pod_identity.h, finalizers.h and the scheduler read; of others
// what the scheduler reads.
nlohmann::json SlimPod(nlohmann::json pod);
// What node_facts.h and the scheduler read.
nlohmann::json SlimNode(nlohmann::json node);

}  // namespace ringmaster::controllers
