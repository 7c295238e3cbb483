// The finalizer of worker pods: it keeps a pod's object until the pod's death is proven or matters
// no more (docs/proof-of-death.md).
//
// Functions without state, safe from any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/kube/kube_api.h"

namespace ringmaster::controllers {

void AddFinalizer(nlohmann::json& pod);
bool HasFinalizer(const nlohmann::json& pod);

// Ok too if the pod is gone, or a newer one has its name. `as_seen`: fails with kConflict if the
// pod was written since it was read, because the decision to let it go may be out of date.
kube::Result<void> RemoveFinalizer(kube::KubeApi& api, const nlohmann::json& pod,
                                   bool as_seen = false);

// Takes the finalizer off every worker pod (ns empty: of all namespaces), for uninstalling: after
// it nobody would do it. Returns how many had one.
kube::Result<int> ClearFinalizers(kube::KubeApi& api, const std::string& ns);

}  // namespace ringmaster::controllers
