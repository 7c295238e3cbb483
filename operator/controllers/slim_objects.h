// Removes the fields of pods and nodes that the operator doesn't read, because it keeps thousands
// of them. Pure functions on JSON; slimming twice changes nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "operator/kube/unread.h"

namespace ringmaster::controllers {

// The pod belongs to a HorovodJob, by its labels or, if those were removed, by its owner.
bool IsWorkerPod(const nlohmann::json& pod);

// Keeps of worker pods what pod_facts.h, pod_identity.h, finalizers.h and the scheduler read, and
// of other pods what the scheduler reads.
nlohmann::json SlimPod(nlohmann::json pod);
// Keeps what node_facts.h and the scheduler read.
nlohmann::json SlimNode(nlohmann::json node);

// The large ones of the fields that the functions above drop; a watch needn't bring them.
kube::Unread UnreadOfPods();
kube::Unread UnreadOfNodes();

}  // namespace ringmaster::controllers
