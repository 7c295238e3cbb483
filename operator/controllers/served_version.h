// Finds out which version of a resource the API server serves, where several would do and none may
// be there.
//
// Thread rule: any thread. Blocks.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::controllers {

// Returns the first of `versions` that is served and that we may list in these namespaces (empty:
// in all); nullopt if there is none, or if the API server has not answered clearly in `kAskings`
// tries (it is busy, doesn't answer, or has refused the token). Waits `pause` between tries.
inline constexpr int kAskings = 10;
std::optional<kube::Resource> ServedVersion(
    kube::KubeApi& api, const std::vector<kube::Resource>& versions,
    std::vector<std::string> namespaces, const std::stop_token& stop,
    std::chrono::milliseconds pause = std::chrono::seconds(1));

}  // namespace ringmaster::controllers
