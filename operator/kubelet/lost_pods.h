// The pods of a node whose node process has died and is started again. Nobody has seen how their
// containers ended, but when nothing of them is left their objects can say that they have: the word
// of the kubelet that follows, and a proof of their death.
//
// Thread rule: any thread.
#pragma once

#include <string>

#include "operator/kube/kube_api.h"

namespace ringmaster::kubelet {

// The status of such a pod. What had ended before keeps its end. Pure.
kube::Json LostStatus(const kube::Json& pod, const std::string& now);

// Kills what is left of the pods that are bound to `node` and have not ended, and tells the API
// server that they have. No kubelet runs them meanwhile.
kube::Result<void> EndLostPods(kube::KubeApi* api, const std::string& node);

}  // namespace ringmaster::kubelet
