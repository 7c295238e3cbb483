// The memory that ranks of a view share, as one rank sees it: its own arena, which it offers to the
// others, and the arenas of others that it has mapped.
//
// Owner: Bootstrap. Thread rule: the one thread that builds the communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/transport/endpoint.h"
#include "ringmaster/communicator.h"

namespace ringmaster::communicator {

class SharedArenas {
 public:
  // Both outlive it.
  SharedArenas(transport::EndpointImpl* endpoint, const CommunicatorOptions& options);

  // This rank shares memory. False: all peers talk over TCP.
  bool on() const { return on_; }
  // The arena that peers may map, where on().
  const transport::Arena& own() const { return *endpoint_->arena(); }

  // Maps the arena of that rank. If that fails the two ranks talk over a stream.
  Status Map(int rank, const transport::UniqueFd& arena, uint64_t id, size_t bytes);

  // By rank: the arena of each rank that this one has mapped, its own included; null for the
  // others.
  const std::vector<std::shared_ptr<transport::ArenaMap>>& maps() const { return maps_; }

 private:
  transport::EndpointImpl* const endpoint_;
  const std::vector<PeerEndpoint>& peers_;
  const bool on_;
  std::vector<std::shared_ptr<transport::ArenaMap>> maps_;
};

}  // namespace ringmaster::communicator
