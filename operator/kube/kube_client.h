// KubeApi over REST. TLS is always verified and connections are reused. Calls are limited (by
// default 50 a second, 100 at once), repeated after 429 with Retry-After while the deadline allows,
// and always ended by their deadline.
//
// Thread rule: every method is safe from any thread. The destructor waits for no call: end watches
// (by their stop tokens) first.
//
// The process must ignore SIGPIPE: TLS may write to a connection that was cut.
#pragma once

#include <memory>

#include "operator/kube/kube_api.h"
#include "operator/kube/kubeconfig.h"

namespace ringmaster::kube {

// Creates a client without connecting. kInvalid: certificates, keys or files can't be read; the
// message names them.
Result<std::unique_ptr<KubeApi>> MakeKubeClient(const ClientConfig& config);

// Calls LoadKubeconfig and then MakeKubeClient.
Result<std::unique_ptr<KubeApi>> ConnectByKubeconfig(const std::filesystem::path& file);

}  // namespace ringmaster::kube
