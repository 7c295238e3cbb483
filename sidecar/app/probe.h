// `ringmaster-sidecar probe PATH`: asks the sidecar of this pod, for pods of the host's network,
// whose ports the kubelet can't know.
#pragma once

#include <chrono>
#include <string>

#include "sidecar/app/options.h"

namespace ringmaster::app {

// Empty if the sidecar answers 200, else why not. Returns within about `limit`.
std::string Probe(const SidecarOptions& options, const std::string& path,
                  std::chrono::seconds limit = std::chrono::seconds(4));

}  // namespace ringmaster::app
