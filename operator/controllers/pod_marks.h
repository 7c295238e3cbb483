// What the controller puts on pods beside what the job says (see pod_builder.h): our finalizer and
// where it shall not go; and the way to get the finalizer off again.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::controllers {

// Annotations that are the operator's word about a pod that runs: a template can't have them.
void DropOperatorsMarks(nlohmann::json& pod);

void AddFinalizer(nlohmann::json& pod);
bool HasFinalizer(const nlohmann::json& pod);

// The ends of nodes that the pod is made in spite of: reasons by node.
void WriteAnnounced(nlohmann::json& pod, const std::map<std::string, std::string>& announced);

// The scheduler takes one of these nodes only where no other fits.
void AvoidNodes(nlohmann::json& pod, const std::vector<std::string>& nodes);

// The scheduler takes none of these nodes.
void KeepOffNodes(nlohmann::json& pod, const std::vector<std::string>& nodes);

// Ok too if the pod is gone, or a newer one has its name. `as_seen`: kConflict if the pod has been
// written since, because it may not be true any more that it may go.
kube::Result<void> RemoveFinalizer(kube::KubeApi& api, const nlohmann::json& pod,
                                   bool as_seen = false);

// Takes the finalizer off every worker pod (ns empty: of all namespaces), for uninstalling: after
// it nobody would do it. Returns how many had one.
kube::Result<int> ClearFinalizers(kube::KubeApi& api, const std::string& ns);

}  // namespace ringmaster::controllers
