// Communicator: collectives in the order they are called, on the caller's thread, as MPI and NCCL
// do.
//
// A communicator belongs to one view. When a member dies, a peer says that the view is dead, or
// Abort() is called, every call in progress and every later one returns RM_ERR_EPOCH_MOVED, soon
// and for ever: a communicator never recovers. The engine (ringmaster.h) builds the next one.
//
// Thread rule: one collective at a time; Abort() from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "ringmaster/endpoint.h"
#include "ringmaster/status.h"
#include "ringmaster/types.h"

namespace ringmaster {

struct CommunicatorOptions {
  uint64_t epoch = 0;
  int rank = 0;
  std::vector<PeerEndpoint> peers;  // by rank, own included
  std::chrono::milliseconds connect_timeout{10000};
  bool allow_shm = true;  // false: TCP only (tests, benchmarks)
  // A peer was seen dead (reset, closed): called once, from the calling thread of the collective
  // that saw it. Also from the thread in Create().
  std::function<void(int rank, const std::string& why)> on_suspect;
  // The connection to a live peer broke that is in this view as well, or can't be made: called as
  // on_suspect is. Only a new view brings another connection.
  std::function<void(int rank, const std::string& why)> on_broken_link;
  std::stop_token stop;  // request_stop() ends Create(), from any thread, with RM_ERR_EPOCH_MOVED;
                         // Abort() is for afterwards
};

class RM_API Communicator {
 public:
  // Returns when every member of the view has called it. RM_ERR_EPOCH_MOVED when `options.stop` is
  // requested meanwhile, a member died or a peer is already in a newer epoch; RM_ERR_TIMEOUT names
  // the ranks that have not come. The epoch must be newer than that of every earlier Create on this
  // endpoint. A view of one rank needs no endpoint: `endpoint` may be null then.
  static Status Create(Endpoint* endpoint, const CommunicatorOptions& options,
                       std::unique_ptr<Communicator>* out);
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual uint64_t epoch() const = 0;

  // `in` is left intact unless in == out. With in == out a failed call leaves the buffer undefined.
  virtual Status Allreduce(const void* in, void* out, size_t count, rm_dtype dtype, rm_op op) = 0;
  // recv: the blocks of all ranks in rank order; bytes_by_rank is the same on every rank.
  virtual Status Allgatherv(const void* send, void* recv,
                            std::span<const size_t> bytes_by_rank) = 0;
  virtual Status Broadcast(void* data, size_t bytes, int root) = 0;
  // Each rank gets its block of the reduced input. `in`: the blocks of all ranks in rank order,
  // counts[k] elements for rank k, the same counts on every rank. `out` may be the own block of
  // `in`; all else of `in` is left intact.
  virtual Status ReduceScatter(const void* in, void* out, std::span<const size_t> counts,
                               rm_dtype dtype, rm_op op) = 0;
  // bytes[i * size + k]: what rank i sends to rank k; the same on every rank. `send`: the blocks
  // for all ranks in rank order, `recv`: those from all; they must not overlap.
  virtual Status Alltoallv(const void* send, void* recv, std::span<const size_t> bytes) = 0;
  virtual Status Barrier() = 0;

  // The collectives of some ranks of this view, the own one among them (ascending); a rank is then
  // its place in `ranks`. Everything goes over streams. Two ranks must make the calls in which both
  // take part, of all communicators of the view, in the same order. Lives and dies with the view.
  virtual Status Subset(std::span<const int> ranks, std::unique_ptr<Communicator>* out) = 0;

  // First writer wins, sticky, idempotent, from any thread: ends every wait with
  // RM_ERR_EPOCH_MOVED.
  virtual void Abort(const std::string& why) = 0;

  // Which path connects this rank with `peer`: "shm" or "tcp" (for people and tests).
  virtual const char* PathTo(int peer) const = 0;

  // Memory of this rank inside the arena that all ranks can map, for buffers that should be reduced
  // where they are: the fastest Allreduce is one whose in and out lie in it on every rank. Always
  // the same memory: a later call for more bytes begins at the same address. It stays readable as
  // long as the endpoint, but ask each new communicator again. Empty if there is none of that size
  // or some peer can't map it.
  virtual std::span<std::byte> ArenaBuffer(size_t bytes) = 0;
};

}  // namespace ringmaster
