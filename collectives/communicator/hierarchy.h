// Collectives of a view whose ranks are in groups that share memory: within a group over the
// arenas, between the groups' first ranks over streams. One group, or groups of one rank, are the
// special cases in which a level falls away. docs/collectives.md tells which algorithm runs when.
//
// The caller has checked the arguments. `op_number` counts the view's operations. Owner: a
// communicator. Thread rule: the thread of the collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/algorithms/shm_group.h"
#include "collectives/algorithms/stream_group.h"
#include "collectives/communicator/group_map.h"
#include "collectives/transport/arena.h"
#include "collectives/transport/liveness_monitor.h"
#include "ringmaster/status.h"

namespace ringmaster::communicator {

class Hierarchy {
 public:
  using Blocks = std::vector<std::span<std::byte>>;             // by rank
  using ConstBlocks = std::vector<std::span<const std::byte>>;  // by rank

  // `ranks[k]`: the rank in the view of rank k of `groups` (in a subset the two differ); `liveness`
  // has the connections by that rank. `maps`: by rank of the view; only the arenas of the own group
  // are used, and of them the channel of this number.
  Hierarchy(transport::LivenessMonitor* liveness, uint64_t epoch, GroupMap groups,
            std::vector<int> ranks, const std::vector<std::shared_ptr<transport::ArenaMap>>& maps,
            int channel);

  const GroupMap& groups() const { return groups_; }

  Status Allreduce(const void* in, void* out, size_t count, const algorithms::Reduction& how,
                   uint64_t op_number);
  // The blocks of `by_rank` must lie one after the other in memory.
  Status Allgatherv(const void* send, const Blocks& by_rank, uint64_t op_number);
  Status Broadcast(void* data, size_t bytes, int root, uint64_t op_number);
  Status ReduceScatter(const ConstBlocks& by_rank, void* out, const algorithms::Reduction& how,
                       uint64_t op_number);
  // bytes[i * size + k]: what rank i sends to rank k.
  Status Alltoallv(ConstBlocks to, Blocks from, std::span<const size_t> bytes, uint64_t op_number);
  Status Barrier(uint64_t op_number);

 private:
  Status AllreduceAcross(const void* in, void* out, size_t count, algorithms::Reduction how,
                         uint64_t op_number);
  Status ReduceScatterAcross(const ConstBlocks& by_rank, void* out,
                             const algorithms::Reduction& how, uint64_t op_number);
  // The longest block that two ranks of the own group exchange.
  size_t LongestInOwn(std::span<const size_t> bytes) const;
  bool shares_memory() const { return shm_ != nullptr; }
  bool leads() const { return leaders_ != nullptr; }

  const GroupMap groups_;
  std::unique_ptr<algorithms::ShmGroup> shm_;  // null: this rank is alone in its group
  // Null: this rank leads no group, or there is only one group.
  std::unique_ptr<algorithms::StreamGroup> leaders_;
  std::unique_ptr<algorithms::StreamGroup> everyone_;  // null: only one group
  unsigned char nothing_ = 0;                          // for Barrier()'s empty allreduce
};

}  // namespace ringmaster::communicator
