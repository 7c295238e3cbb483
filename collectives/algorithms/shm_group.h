// Collectives among ranks that have mapped each other's arenas.
//
// Small messages go through one slot for each rank and call ("one shot": all read all
// slots, one hand-shake). Large ones go in chunks: each rank stages its chunk, reduces its
// own slice of all chunks, and copies the others' slices. Buffers that lie in the arenas of all
// are reduced where they are. What each flag counts stands in arena.h; the counters run on over
// calls, so no barrier is needed between them.
//
// Each slice is reduced by one rank in rank order: all get the same bits.
// Thread rule: the thread of the collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/algorithms/shm_peers.h"
#include "collectives/transport/arena.h"
#include "collectives/transport/liveness_monitor.h"
#include "ringmaster/status.h"

namespace ringmaster::algorithms {

// How elements are reduced, in shared memory and over streams.
struct Reduction {
  rm_dtype dtype;
  rm_op op;
  int divisor = 1;
};

class ShmGroup {
 public:
  // `maps` in rank order, the own one at `self`.
  ShmGroup(transport::LivenessMonitor* liveness, uint64_t epoch,
           std::vector<std::shared_ptr<transport::ArenaMap>> maps, int self);

  int size() const { return peers_.size(); }

  // `op_number` is the communicator's. With `only_first` the result is only complete at the group's
  // first rank.
  Status Allreduce(const void* in, void* out, size_t count, const Reduction& how,
                   uint64_t op_number, bool only_first = false);
  Status Broadcast(void* data, size_t bytes, int root, uint64_t op_number);
  // blocks[k] is where rank k's block belongs; the own one is read from `send` and put there too.
  Status Allgatherv(const void* send, std::span<const std::span<std::byte>> blocks,
                    uint64_t op_number);
  // blocks[k]: this rank's part of what rank k gets. `out`: this rank's block, reduced; may be
  // blocks[self]. Ranks give blocks of the same sizes.
  Status ReduceScatter(std::span<const std::span<const std::byte>> blocks, void* out,
                       const Reduction& how, uint64_t op_number);
  // send[k] goes to rank k, recv[k] comes from there. `longest`: of all ranks' blocks.
  Status Alltoallv(std::span<const std::span<const std::byte>> send,
                   std::span<const std::span<std::byte>> recv, size_t longest, uint64_t op_number);
  Status Barrier(uint64_t op_number);

 private:
  // One large allreduce on its way.
  struct Staged;

  // Each chunk's slot has room for a part for every rank.
  size_t PartBytes() const;
  // Stages part `index` of each other rank's block.
  Status StageParts(std::span<const std::span<const std::byte>> blocks, size_t index,
                    uint64_t chunk);

  Status OneShot(const void* in, void* out, size_t count, const Reduction& how);
  Status StagedAllreduce(const void* in, void* out, size_t count, const Reduction& how,
                         bool only_first);
  Status Stage(const Staged& job, size_t index);
  // This rank's part of the chunk lies in its slot.
  void RaiseStaged(uint64_t chunk);
  Status ReduceSlice(const Staged& job, size_t index);
  Status CopySlices(const Staged& job, size_t index);
  // Tells the other ranks where this rank's buffers lie. *all: the buffers of all ranks lie in
  // their arenas.
  Status Offer(const void* in, void* out, size_t bytes, bool* all);
  Status ReduceInPlace(size_t count, const Reduction& how);

  ShmPeers peers_;
  const size_t small_bytes_;  // messages up to this go in one shot
  const size_t chunk_bytes_;

  uint64_t small_ = 0;   // one-shot operations begun
  uint64_t chunk_ = 0;   // chunks of complete operations
  uint64_t offers_ = 0;  // large allreduces begun
  std::vector<const void*> sources_;
  std::vector<transport::Offered> places_;  // of all ranks' buffers, checked
};

}  // namespace ringmaster::algorithms
