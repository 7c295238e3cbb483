// The communicator of a view whose bytes are moved by MPI. It stands on the host's communicator of
// the same ranks, which says whether they live, and which carries what is small and is written to
// memory of a caller that can't be kept: the sizes that ranks tell each other before they move what
// has them (allgathers of at most one number for each rank from each rank).
//
// Owner: MpiBackend. Thread rule: Abort() from any thread, the rest from the engine's.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "collectives/mpi/mpi_world.h"
#include "ringmaster/communicator.h"

namespace ringmaster::mpi {

class MpiCommunicator : public Communicator {
 public:
  // Of all ranks. The arguments outlive this.
  MpiCommunicator(MpiWorld* world, Communicator* host)
      : MpiCommunicator(world, world->all(), host, host, nullptr) {}
  ~MpiCommunicator() override;

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  uint64_t epoch() const override { return host_->epoch(); }

  Status Allreduce(const void* in, void* out, size_t count, rm_dtype dtype, rm_op op) override;
  Status Allgatherv(const void* send, void* recv, std::span<const size_t> bytes_by_rank) override;
  Status Broadcast(void* data, size_t bytes, int root) override;
  Status ReduceScatter(const void* in, void* out, std::span<const size_t> counts, rm_dtype dtype,
                       rm_op op) override;
  Status Alltoallv(const void* send, void* recv, std::span<const size_t> bytes) override;
  Status Barrier() override;
  Status Subset(std::span<const int> ranks, int channel,
                std::unique_ptr<Communicator>* out) override;
  Status CheckPeers() override { return whole_->CheckPeers(); }
  void Abort(const std::string& why) override { host_->Abort(why); }
  const char* PathTo(int peer) const override {
    return host_->PathTo(peer)[0] == '\0' ? "" : "mpi";
  }
  std::span<std::byte> ArenaBuffer(size_t) override { return {}; }

 private:
  MpiCommunicator(MpiWorld* world, Comm comm, Communicator* host, Communicator* whole,
                  std::unique_ptr<Communicator> own_host);

  Status Sum(const void* in, void* out, size_t count, rm_dtype dtype, rm_op op);
  Status AverageWide(const void* in, void* out, size_t count, rm_dtype dtype);
  Status SumBlocks(const void* in, void* out, std::span<const size_t> counts, rm_dtype dtype,
                   rm_op op);
  Status SumBlocksInRounds(const void* in, void* out, std::span<const size_t> counts,
                           rm_dtype dtype, rm_op op);
  Status AverageWideBlocks(const void* in, void* out, std::span<const size_t> counts,
                           rm_dtype dtype);
  Status ExchangeInRounds(const std::byte* send, std::byte* recv, std::span<const size_t> bytes);
  Status Await(const char* what, Code begun, Request request) {
    return world_->Await(whole_, what, begun, request);
  }
  MpiApi* mpi() const { return world_->mpi(); }

  MpiWorld* const world_;
  const Comm comm_;
  const std::unique_ptr<Communicator> own_host_;  // owns host_ if only some ranks take part
  Communicator* const host_;                      // of the same ranks
  Communicator* const whole_;                     // of all ranks of the view
};

}  // namespace ringmaster::mpi
