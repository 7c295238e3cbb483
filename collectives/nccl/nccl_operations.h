// The collectives on device memory, as calls of NCCL. Each enqueues what it needs on the stream,
// and returns without waiting for the device.
//
// Thread rule: the engine's.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/engine/pending_table.h"
#include "collectives/engine/response.h"
#include "collectives/nccl/device_buffers.h"
#include "collectives/nccl/gpu_stream.h"
#include "collectives/nccl/nccl_group.h"
#include "collectives/nccl/nccl_reduction.h"
#include "collectives/nccl/rank_groups.h"

namespace ringmaster::nccl {

using Batch = std::span<const engine::Request>;

// Bytes from the beginning of a tensor's result in the buffer of an allreduce's batch to the next
// one's: those of the result, and as many more that NCCL can use its widest loads and stores.
uint64_t SpaceOf(const engine::Request& request);
// Bytes of that buffer.
uint64_t BytesOf(Batch batch);

// One batch in progress.
struct Work {
  Batch batch;
  int root;
  const RankGroup& on;
  const engine::Response& response;
  const engine::PendingTable& pending;
  engine::Part* part;  // of the result
};

class NcclOperations {
 public:
  // `over`: says whether the view is over, so that nobody waits any more. All arguments outlive
  // this object.
  NcclOperations(std::shared_ptr<NcclApi> nccl, WaitLimits limits, GpuStream* stream,
                 DeviceBuffers* buffers, Patience::Over over)
      : nccl_(std::move(nccl)),
        limits_(limits),
        stream_(stream),
        buffers_(buffers),
        over_(std::move(over)) {}

  // `reductions`: one for each tensor of an allreduce, one for a reducescatter, none for the
  // others.
  Status Enqueue(const Work& work, NcclLink* link, const std::vector<NcclReduction>& reductions);

 private:
  Status Allreduce(const Work& work, NcclLink* link, const std::vector<NcclReduction>& reductions);
  Status Reducescatter(const Work& work, NcclLink* link, const NcclReduction& reduction);
  Status Allgather(const Work& work, NcclLink* link);
  Status Broadcast(const Work& work, NcclLink* link);
  Status Alltoall(const Work& work, NcclLink* link);

  // One call of NCCL's within an allreduce.
  struct Call {
    const void* in;
    uint64_t offset;  // of its result, in the batch's buffer
    uint64_t count;
  };
  // The calls for a request whose result begins at `offset`: one, or one for each tensor of a
  // prepared group, on all ranks alike.
  Status CallsFor(const engine::Request& request, const engine::PendingTable& pending,
                  uint64_t offset, std::vector<Call>* calls);
  // The input on the device: the operation's own or, on a rank that has joined, one that changes
  // nothing.
  Status InputOf(const engine::Request& request, const engine::PendingTable& pending,
                 const void** in);
  // Makes these calls of NCCL's as one launch.
  Status Launch(NcclLink* link, const std::string& what, const std::function<Result()>& calls);

  const std::shared_ptr<NcclApi> nccl_;
  const WaitLimits limits_;
  GpuStream* const stream_;
  DeviceBuffers* const buffers_;
  const Patience::Over over_;
};

}  // namespace ringmaster::nccl
