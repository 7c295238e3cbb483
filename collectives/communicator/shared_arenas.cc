#include "collectives/communicator/shared_arenas.h"

namespace ringmaster::communicator {

SharedArenas::SharedArenas(transport::EndpointImpl* endpoint, const CommunicatorOptions& options)
    : endpoint_(endpoint),
      peers_(options.peers),
      on_(options.allow_shm && endpoint->arena() != nullptr),
      maps_(options.peers.size()) {
  maps_[static_cast<size_t>(options.rank)] = endpoint->arena();
}

Status SharedArenas::Map(int rank, const transport::UniqueFd& arena, uint64_t id, size_t bytes) {
  const auto index = static_cast<size_t>(rank);
  Status mapped = endpoint_->Attach(peers_[index].shm, arena, id, bytes, &maps_[index]);
  if (!mapped.ok()) {
    transport::LogLine("no shared memory with rank " + std::to_string(rank) +
                       ", using a stream: " + mapped.message());
  }
  return mapped;
}

}  // namespace ringmaster::communicator
