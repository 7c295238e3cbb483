// Where the sidecars of a job's pods are, and asking all of them at the same time.
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

// Of the pods that run and whose sidecar has said where it listens.
std::vector<SidecarAddress> SidecarsOf(const std::vector<nlohmann::json>& pods);

// The same without those whose address is not the pod's own. An address is an annotation, which
// others may write: the token would go to somebody else.
std::vector<SidecarAddress> SidecarsAtHome(const std::vector<nlohmann::json>& pods);

// Does `act` for 0 to `count` - 1, some 32 at a time: one that takes long holds up no other.
void InParallel(std::size_t count, const std::function<void(std::size_t)>& act);

}  // namespace ringmaster::inspection
