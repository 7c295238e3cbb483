// Runs one batch of what the ranks have agreed on, over the host's communicator. The result goes to
// a buffer of the engine or, for a direct allreduce, to the caller's `out`.
//
// Owner and thread: one call of CpuBackend::Execute.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/engine/participants.h"
#include "collectives/engine/pending_table.h"
#include "collectives/engine/response.h"

namespace ringmaster::engine {

// The operation of this rank for this request. A rank that has joined has asked for none, so it
// gets an operation without memory and rows.
const Operation& AskedFor(const Request& request, const PendingTable& pending);

class CpuCollectives {
 public:
  using Batch = std::span<const Request>;

  // `on`: the ranks that take part. All arguments outlive this.
  CpuCollectives(const Participants::Ranks& on, const PendingTable& pending, BufferPool* pool)
      : on_(on), pending_(pending), pool_(pool) {}

  // `root`: the place of the sending rank among those that take part. On failure
  // (RM_ERR_EPOCH_MOVED, RM_ERR_OUT_OF_MEMORY) the callers' inputs are as they were.
  Status Run(Batch batch, int root, Part* part);
  // Reduces from the caller's `in` to its `out`, `segment_bytes` at a time. Where in == out the
  // input is saved in part->input, because it is overwritten. Errors as Run(): this batch's input
  // is as it was, and CpuBackend restores those of earlier batches.
  Status DirectAllreduce(const Request& request, uint64_t segment_bytes, Part* part);

 private:
  Status Allreduce(Batch batch, Part* part);
  Status Adasum(const Request& request, Part* part);
  Status Allgather(const Request& request, Part* part);
  Status Broadcast(const Request& request, int root, Part* part);
  Status Reducescatter(const Request& request, Part* part);
  Status Alltoall(const Request& request, Part* part);
  // How many rows this rank sends to each of the ranks that take part.
  std::vector<uint64_t> RowsTo(const Operation& operation) const;
  // The rows that this rank sends, without those for workers that have died since it asked. If
  // there are such rows, *packed is a buffer with a copy of the others. Null: there is no memory
  // for it.
  const std::byte* Packed(const Operation& operation, const std::vector<uint64_t>& rows,
                          std::shared_ptr<Buffer>* packed);

  const Participants::Ranks& on_;
  const PendingTable& pending_;
  BufferPool* const pool_;
};

}  // namespace ringmaster::engine
