// KubeApi over REST: TLS always verified, connections reused, calls limited (50 a second, 100 at
// once by default), 429 with Retry-After waited for and repeated while the deadline allows, every
// call ended by its deadline.
//
// Thread rule: every method is safe from any thread. The destructor waits for no call: end watches
// (stop token) first.
//
// A process that uses it must not die of SIGPIPE: TLS writes to a connection that was cut.
#pragma once

#include <memory>

#include "operator/kube/kube_api.h"
#include "operator/kube/kubeconfig.h"

namespace ringmaster::kube {

// Doesn't connect yet. kInvalid: certificates, keys or files that can't be read; the message names
// them.
Result<std::unique_ptr<KubeApi>> MakeKubeClient(const ClientConfig& config);

// LoadKubeconfig and MakeKubeClient in one.
Result<std::unique_ptr<KubeApi>> ConnectByKubeconfig(const std::filesystem::path& file);

}  // namespace ringmaster::kube
