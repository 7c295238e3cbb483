// The finalizer of worker pods: it keeps a pod's object until the pod's death is proven or matters
// no more (docs/proof-of-death.md).
//
// Functions without state, safe from any thread.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/kube/kube_api.h"

namespace ringmaster::controllers {

void AddFinalizer(nlohmann::json& pod);
bool HasFinalizer(const nlohmann::json& pod);

// Succeeds too if the pod is gone or a newer pod has its name. `as_seen`: fails with kConflict if
// the pod was changed since it was read, because the decision to release it may be outdated.
kube::Result<void> RemoveFinalizer(kube::KubeApi& api, const nlohmann::json& pod,
                                   bool as_seen = false);

// Removes the finalizer from every worker pod (`ns` empty: in all namespaces), for uninstalling:
// without the operator no one else removes it. Returns how many pods had it; the error is that of a
// pod that still has it, while all others were tried.
kube::Result<int> ClearFinalizers(kube::KubeApi& api, const std::string& ns,
                                  std::size_t calls_at_once = 8);

}  // namespace ringmaster::controllers
