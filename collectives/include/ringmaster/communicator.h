// Communicator: runs collectives in the order in which they are called, on the caller's thread, as
// MPI and NCCL do.
//
// A communicator belongs to one view. The view dies when a member dies or a connection breaks, when
// a peer says that it is dead, or when Abort() is called. From then on the call in progress and
// every later one return RM_ERR_EPOCH_MOVED without a long wait: a communicator never recovers. The
// engine (ringmaster.h) builds the next one.
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
  std::vector<PeerEndpoint> peers;  // by rank; includes this process
  std::chrono::milliseconds connect_timeout{10000};
  // How long a peer that is asked whether it lives may take to answer before it is suspected.
  std::chrono::milliseconds probe_limit{500};
  bool allow_shm = true;  // false: TCP only (tests, benchmarks)
  // Called when a peer is suspected to be dead: its connection has broken and it no longer answers.
  // At most once for each peer, on the thread that is in Create() or in a collective.
  std::function<void(int rank, const std::string& why)> on_suspect;
  // Called on the same threads when the connection to a peer has broken, or can't be made, although
  // the peer lives and is in this view. Only a new view brings another connection.
  std::function<void(int rank, const std::string& why)> on_broken_link;
  // A stop request, from any thread, ends Create() with RM_ERR_EPOCH_MOVED. Once Create() has
  // returned, use Abort().
  std::stop_token stop;
};

// How many subsets that have a rank in common can use shared memory at a time.
inline constexpr int kSubsetChannels = 3;

class RM_API Communicator {
 public:
  // Connects this rank with the other members; returns when every member has called it. `endpoint`
  // outlives the communicator; it may be null for a view of one rank. The epoch must be newer than
  // those of all earlier calls on this endpoint.
  // RM_ERR_EPOCH_MOVED: a stop was requested, a member died, a peer is already in a newer epoch, or
  // this endpoint is. RM_ERR_TIMEOUT: connect_timeout has passed; the message names the ranks that
  // have not come. RM_ERR_INVALID: the rank is not in the view, the endpoint is missing, or it has
  // built a view of this epoch before.
  static Status Create(Endpoint* endpoint, const CommunicatorOptions& options,
                       std::unique_ptr<Communicator>* out);
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual uint64_t epoch() const = 0;

  // The collectives: all ranks make the same calls in the same order. RM_ERR_INVALID: an argument
  // is wrong (the calling rank has then taken no part in anything). RM_ERR_OUT_OF_MEMORY: an
  // average needs wider temporary memory, and there is none. RM_ERR_EPOCH_MOVED: the view is dead,
  // and the output buffer is undefined.

  // in, out: `count` elements of `dtype`; RM_ADASUM is not offered. `in` stays intact unless
  // in == out; then a failed call leaves the buffer undefined.
  virtual Status Allreduce(const void* in, void* out, size_t count, rm_dtype dtype, rm_op op) = 0;
  // bytes_by_rank: `size()` entries, the same on every rank. send: bytes_by_rank[rank()] bytes.
  // recv: the blocks of all ranks, in rank order.
  virtual Status Allgatherv(const void* send, void* recv,
                            std::span<const size_t> bytes_by_rank) = 0;
  // Copies the root's `bytes` bytes of `data` to every other rank's `data`.
  virtual Status Broadcast(void* data, size_t bytes, int root) = 0;
  // Each rank gets its block of the reduced input. counts: `size()` entries, the same on every
  // rank. in: the blocks for all ranks in rank order, counts[k] elements for rank k. out:
  // counts[rank()] elements. `out` may be this rank's block of `in`; the rest of `in` stays intact.
  virtual Status ReduceScatter(const void* in, void* out, std::span<const size_t> counts,
                               rm_dtype dtype, rm_op op) = 0;
  // bytes: size() * size() entries, the same on every rank; rank i sends bytes[i * size() + k]
  // bytes to rank k. send: the blocks for all ranks in rank order. recv: the blocks from all ranks
  // in rank order. `send` and `recv` must not overlap.
  virtual Status Alltoallv(const void* send, void* recv, std::span<const size_t> bytes) = 0;
  // Returns when every rank has called it.
  virtual Status Barrier() = 0;

  // Makes a communicator of some ranks of this view, given in ascending order with this rank among
  // them; in it, a rank's number is its index in `ranks`. Where two ranks take part in calls of
  // several communicators of the view, both must make these calls in the same order. A subset dies
  // with its view, and no subset can be made of it.
  // channel: which part of the arenas the subset uses, 1 to kSubsetChannels, if all of its ranks
  // share memory; else, and with 0, it uses streams. All its ranks must give the same. Subsets that
  // have a rank in common must have different channels, those that are gone included, because what
  // they have left in the arenas counts until the view is over.
  // RM_ERR_INVALID: `ranks` or `channel` is wrong. RM_ERR_EPOCH_MOVED: the view is dead.
  virtual Status Subset(std::span<const int> ranks, int channel,
                        std::unique_ptr<Communicator>* out) = 0;

  // Ends the view on this rank, from any thread: every wait and every later call returns
  // RM_ERR_EPOCH_MOVED. The first reason is kept; further calls do nothing.
  virtual void Abort(const std::string& why) = 0;

  // Which path connects this rank with `peer`: "shm" or "tcp" (for people and tests). "" for a
  // number that is no rank.
  virtual const char* PathTo(int peer) const = 0;

  // `bytes` bytes of this rank's arena, for buffers that should be reduced in place: the fastest
  // Allreduce is one whose `in` and `out` lie there on every rank. All calls give the same memory:
  // a later call for more bytes begins at the same address. The memory stays readable as long as
  // the endpoint lives, but ask each new communicator again. Empty if the arena has less than
  // `bytes`, or if some rank can't map it.
  virtual std::span<std::byte> ArenaBuffer(size_t bytes) = 0;

  // Looks, without waiting for anybody, whether the view is dead. For a rank that waits for its
  // peers by another way than this communicator, between its calls. All of them have to be still
  // there, so a peer that has left the view counts as gone, too. RM_ERR_EPOCH_MOVED: it is dead.
  virtual Status CheckPeers() = 0;
};

}  // namespace ringmaster
