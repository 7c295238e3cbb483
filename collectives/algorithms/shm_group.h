// Collectives among ranks that have mapped each other's arenas.
//
// Small messages go through one slot for each rank in "one shot": each rank writes its slot, then
// reads the slots of all. Large ones go in chunks: each rank stages its chunk, reduces its own
// slice of all chunks, and copies the slices of the others. Buffers that lie in the arenas of all
// ranks are reduced where they are. What each flag counts stands in arena.h; the counters run on
// from call to call, so no barrier is needed between calls.
//
// Each slice is reduced by one rank, in rank order, so all ranks get the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
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
  // `channels` in rank order, the own one at `self`: the same number of each arena, and within a
  // view no other group uses it of any of these arenas.
  ShmGroup(transport::LivenessMonitor* liveness, uint64_t epoch,
           std::vector<transport::ArenaChannel> channels, int self);

  int size() const { return peers_.size(); }

  // `op_number` is the communicator's. With `only_first` the result is only complete at the group's
  // first rank.
  Status Allreduce(const void* in, void* out, size_t count, const Reduction& how,
                   uint64_t op_number, bool only_first = false);
  Status Broadcast(void* data, size_t bytes, int root, uint64_t op_number);
  // blocks[k] is where rank k's block belongs. The own block is read from `send` and put there too.
  Status Allgatherv(const void* send, std::span<const std::span<std::byte>> blocks,
                    uint64_t op_number);
  // blocks[k]: this rank's part of what rank k gets. `out`: the reduced block of this rank; it may
  // be blocks[self]. All ranks give blocks of the same sizes.
  Status ReduceScatter(std::span<const std::span<const std::byte>> blocks, void* out,
                       const Reduction& how, uint64_t op_number);
  // send[k] goes to rank k, recv[k] comes from it. `longest`: the longest block of all ranks, the
  // same on every rank.
  Status Alltoallv(std::span<const std::span<const std::byte>> send,
                   std::span<const std::span<std::byte>> recv, size_t longest, uint64_t op_number);
  Status Barrier(uint64_t op_number);

 private:
  // A large allreduce in progress.
  struct Staged;

  // The bytes of a chunk's slot that belong to each rank: the slot is divided into a part for every
  // rank.
  size_t PartBytes() const;
  // Stages part `index` of the block of each other rank.
  Status StageParts(std::span<const std::span<const std::byte>> blocks, size_t index,
                    uint64_t chunk);

  Status OneShot(const void* in, void* out, size_t count, const Reduction& how);
  Status StagedAllreduce(const void* in, void* out, size_t count, const Reduction& how,
                         bool only_first);
  Status Stage(const Staged& job, size_t index);
  // Tells the others that what this rank has to stage of the chunk lies in its slot.
  void RaiseStaged(uint64_t chunk);
  Status ReduceSlice(const Staged& job, size_t index);
  Status CopySlices(const Staged& job, size_t index);
  // Tells the other ranks where this rank's buffers lie. *all becomes true if the buffers of all
  // ranks lie in their arenas.
  Status Offer(const void* in, void* out, size_t bytes, bool* all);
  Status ReduceInPlace(size_t count, const Reduction& how);

  ShmPeers peers_;
  const size_t small_bytes_;  // messages up to this size go in one shot
  const size_t chunk_bytes_;

  uint64_t small_ = 0;   // one-shot operations begun
  uint64_t chunk_ = 0;   // chunks of the operations so far, and so the number of the next one
  uint64_t offers_ = 0;  // large allreduces begun
  std::vector<const void*> sources_;
  std::vector<transport::Offered> places_;  // where the buffers of all ranks lie, checked
};

}  // namespace ringmaster::algorithms
