// Collectives among ranks that are connected by streams (TCP, or a unix socket where memory can't
// be shared).
//
// Everything is made of one kind of transfer: a list of segments is sent to one peer while another
// list is received from a second one, and neither blocks the other. What arrives is reduced at
// once, while it is in cache, and may be sent on before its segment is complete. Small messages use
// recursive doubling (between 2 ranks, one exchange), large ones a ring.
//
// All ranks get the same bits, because the order of the operands depends only on the ranks.
// Thread rule: the thread of the collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/algorithms/shm_group.h"
#include "collectives/transport/connection.h"
#include "collectives/transport/liveness_monitor.h"
#include "ringmaster/status.h"

namespace ringmaster::algorithms {

class StreamGroup {
 public:
  // `ranks`: the members' ranks in the view, ascending; `self`: index of the own one.
  StreamGroup(transport::LivenessMonitor* liveness, uint64_t epoch, std::vector<int> ranks,
              int self);

  int size() const { return static_cast<int>(ranks_.size()); }

  Status Allreduce(const void* in, void* out, size_t count, const Reduction& how,
                   uint64_t op_number);
  Status Broadcast(void* data, size_t bytes, int root, uint64_t op_number);
  // blocks[k]: the segments that member k has and that all members get.
  Status Allgatherv(std::span<const std::vector<std::span<std::byte>>> blocks, uint64_t op_number);
  // blocks[k]: this rank's part of what member k gets. `out`: the reduced block of this rank; it
  // may be blocks[self]. All ranks give blocks of the same sizes.
  Status ReduceScatter(std::span<const std::span<const std::byte>> blocks, void* out,
                       const Reduction& how, uint64_t op_number);
  // send[k] goes to member k, recv[k] comes from it; nothing is sent for an empty block. The caller
  // copies the own block.
  Status Alltoallv(std::span<const std::span<const std::byte>> send,
                   std::span<const std::span<std::byte>> recv, uint64_t op_number);

 private:
  // A stretch of memory that is sent or received as one frame.
  struct Segment {
    std::byte* data = nullptr;
    size_t bytes = 0;
    const std::byte* other = nullptr;  // receiving: data = arrived op other (null: data = arrived)
    bool last = false;                 // the last reduction of these elements, which divides too
  };
  // Sends `out_segments` to one member and receives `in_segments` from another. The first `ready`
  // outgoing segments can be sent at once; the i-th after them is what the i-th incoming one
  // brings.
  struct Transfer {
    int to = -1;
    int from = -1;
    std::span<const Segment> out_segments;
    std::span<const Segment> in_segments;
    size_t ready = 0;
    const Reduction* how = nullptr;
  };
  class TransferLoop;

  Status Run(const Transfer& transfer);
  Status Exchange(int peer, const void* send, void* recv, size_t bytes);
  Status SendTo(int peer, const void* data, size_t bytes);
  Status ReceiveFrom(int peer, void* data, size_t bytes);

  Status RecursiveDoubling(const void* in, void* out, size_t count, const Reduction& how);
  Status RingAllreduce(const void* in, void* out, size_t count, const Reduction& how);
  Status TreeBroadcast(void* data, size_t bytes, int root);
  Status ChainBroadcast(void* data, size_t bytes, int root);

  transport::Connection* ConnectionTo(int member) const {
    return liveness_->connection(ranks_[static_cast<size_t>(member)]);
  }

  transport::LivenessMonitor* const liveness_;
  const uint64_t epoch_;
  const std::vector<int> ranks_;
  const int self_;

  uint64_t op_number_ = 0;
  std::vector<std::byte> scratch_;  // empty before the first reduction
  std::vector<std::byte> arrived_;  // messages of recursive doubling; blocks that are passed on
};

}  // namespace ringmaster::algorithms
