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
#include "collectives/nccl/rank_groups.h"
#include "collectives/nccl/reduction.h"

namespace ringmaster::nccl {

using Batch = std::span<const engine::Request>;

// One batch on its way.
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
  // `over`: the view is, and nobody waits any more. All outlive it.
  NcclOperations(std::shared_ptr<NcclApi> nccl, Limits limits, GpuStream* stream,
                 DeviceBuffers* buffers, Patience::Over over)
      : nccl_(std::move(nccl)),
        limits_(limits),
        stream_(stream),
        buffers_(buffers),
        over_(std::move(over)) {}

  // `reductions`: of an allreduce one for each tensor, of a reducescatter one.
  Status Enqueue(const Work& work, NcclLink* link, const std::vector<Reduction>& reductions);

 private:
  Status Allreduce(const Work& work, NcclLink* link, const std::vector<Reduction>& reductions);
  Status Reducescatter(const Work& work, NcclLink* link, const Reduction& reduction);
  Status Allgather(const Work& work, NcclLink* link);
  Status Broadcast(const Work& work, NcclLink* link);
  Status Alltoall(const Work& work, NcclLink* link);

  // The input on the device: the operation's own, or, of a rank that has joined, what changes
  // nothing.
  Status InputOf(const engine::Request& request, const engine::PendingTable& pending,
                 const void** in);
  // Calls between the two are launched as one.
  Status Launch(NcclLink* link, const std::string& what, const std::function<Result()>& calls);

  const std::shared_ptr<NcclApi> nccl_;
  const Limits limits_;
  GpuStream* const stream_;
  DeviceBuffers* const buffers_;
  const Patience::Over over_;
};

}  // namespace ringmaster::nccl
