// Runs one batch of what the ranks have agreed on, over the host's communicator: from the callers'
// inputs to a buffer of the engine's, or, direct, to where the callers want it.
//
// Owner and thread: one execution of CpuBackend's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/engine/participants.h"
#include "collectives/engine/pending_table.h"
#include "collectives/engine/response.h"

namespace ringmaster::engine {

// The operation that this rank has asked for. A rank that has joined asks for nothing, so for it
// this is an operation without memory or rows.
const Operation& AskedFor(const Request& request, const PendingTable& pending);

class CpuCollectives {
 public:
  using Batch = std::span<const Request>;

  // Among `on`. All of them outlive this.
  CpuCollectives(const Participants::Ranks& on, const PendingTable& pending, BufferPool* pool)
      : on_(on), pending_(pending), pool_(pool) {}

  // `root`: the place of the sending rank among those that take part. On failure
  // (RM_ERR_EPOCH_MOVED, RM_ERR_OUT_OF_MEMORY) the callers' inputs are as they were.
  Status Run(Batch batch, int root, Part* part);
  // An allreduce where the callers have it, `segment_bytes` at a time. An input that is written
  // over is saved in part->input.
  Status DirectAllreduce(const Request& request, uint64_t segment_bytes, Part* part);

 private:
  Status Allreduce(Batch batch, Part* part);
  Status Adasum(const Request& request, Part* part);
  Status Allgather(const Request& request, Part* part);
  Status Broadcast(const Request& request, int root, Part* part);
  Status Reducescatter(const Request& request, Part* part);
  Status Alltoall(const Request& request, Part* part);
  // Rows that this rank sends to each rank of the view.
  std::vector<uint64_t> RowsTo(const Operation& operation) const;
  // The rows that this rank sends, in the order of the view's ranks. They lie in `packed` if the
  // input has them in another order.
  const std::byte* Packed(const Operation& operation, const std::vector<uint64_t>& rows,
                          std::shared_ptr<Buffer>* packed);

  const Participants::Ranks& on_;
  const PendingTable& pending_;
  BufferPool* const pool_;
};

}  // namespace ringmaster::engine
