// Finds the sidecars of a job's pods, and asks all of them at the same time.
//
// Thread rule: free functions; nothing is kept.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ringmaster::inspection {

struct SidecarAddress {
  std::string pod;
  std::string address;  // host:port
};

// Addresses of the running pods whose sidecar has reported one.
std::vector<SidecarAddress> SidecarsOf(const std::vector<nlohmann::json>& pods);

// The same without addresses that are not the pod's own. An address is an annotation, which others
// may write, so the token could go to someone else.
std::vector<SidecarAddress> SidecarsAtHome(const std::vector<nlohmann::json>& pods);

// Calls `act` for 0 to `count` - 1, up to `at_once` at a time, so that a slow call delays no other.
void InParallel(std::size_t count, const std::function<void(std::size_t)>& act,
                std::size_t at_once = 32);

}  // namespace ringmaster::inspection
