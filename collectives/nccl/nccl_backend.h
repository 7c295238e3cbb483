// The backend for tensors in a GPU's memory: NCCL moves and reduces them there.
//
// What NCCL doesn't offer (ReductionFor), and everything where some rank has no NCCL, goes through
// the host's memory and the host's backend: slower, with the same results.
//
// A result is kept in a buffer of ours, on the device or on the host (CUDA's copies find out
// which). It is final: postscale is in it already.
//
// Waits: for NCCL and for the device by asking, with a limit and until Abort(). Inputs stay intact,
// so whatever was interrupted runs again in the next view.
//
// Thread rule: Abort() from any thread, the rest from the engine's.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectives/engine/backend.h"
#include "collectives/nccl/device_pool.h"
#include "collectives/nccl/gpu.h"
#include "collectives/nccl/gpu_stream.h"
#include "collectives/nccl/nccl_group.h"
#include "collectives/nccl/reduction.h"

namespace ringmaster::nccl {

class NcclBackend : public engine::Backend {
 public:
  // `gpu` has CUDA. `on_host` runs what goes through the host's memory; installed and uninstalled
  // by its owner, around this one. `device`: of a worker that takes part before it has a tensor of
  // its own (it has joined).
  NcclBackend(const Gpu& gpu, engine::Backend* on_host, int device, Limits limits);
  ~NcclBackend() override;

  void Install(Communicator* host, const std::vector<std::string>& workers) override;
  void Uninstall() override;
  void ForgetSet(int32_t process_set) override;
  Status Execute(const engine::Response& response, const engine::PendingTable& pending,
                 engine::Retained* result) override;
  Status Confirm() override { return on_->host->Barrier(); }
  Status HandOver(int holder, const engine::Retained* held, engine::Retained* result) override;
  bool Publish(const engine::Retained& result, engine::PendingTable* pending) override;
  void Abort(uint64_t epoch) override;

 private:
  using Batch = std::span<const engine::Request>;

  // Those that take part in an operation: all ranks of the view, or a process set's.
  struct Ranks {
    Communicator* host = nullptr;
    std::unique_ptr<Communicator> own;  // of a set
    std::vector<std::string> workers;   // by rank
    std::unique_ptr<NcclGroup> group;
  };
  // One batch on its way.
  struct Work {
    Batch batch;
    int root;
    const engine::Response& response;
    const engine::PendingTable& pending;
    engine::Part* part;
  };

  Status Choose(const engine::Response& response);
  Status Prepare(const engine::Response& response, const engine::PendingTable& pending);
  Status RunBatch(const Work& work);
  // Null: NCCL can't, and the host does it.
  NcclLink* LinkFor(const Work& work, std::vector<Reduction>* reductions);
  Status RunOnHost(const Work& work);
  Status CopyToHost(const engine::Operation& operation, std::shared_ptr<engine::Buffer>* copy);

  // ---- With NCCL. Each enqueues what it needs, and returns without waiting for the device.
  Status Enqueue(const Work& work, NcclLink* link, const std::vector<Reduction>& reductions);
  Status Allreduce(const Work& work, NcclLink* link, const std::vector<Reduction>& reductions);
  Status Reducescatter(const Work& work, NcclLink* link, const Reduction& reduction);
  Status Allgather(const Work& work, NcclLink* link);
  Status Broadcast(const Work& work, NcclLink* link);
  Status Alltoall(const Work& work, NcclLink* link);
  // Calls between the two are launched as one.
  Status Launch(NcclLink* link, const std::string& what, const std::function<Result()>& calls);

  // The input on the device: the operation's own, or, of a rank that has joined, what changes
  // nothing.
  Status InputOf(const engine::Request& request, const engine::PendingTable& pending,
                 const void** in);
  Status MakePart(engine::Part* part, uint64_t bytes);
  std::shared_ptr<engine::Buffer> Take(uint64_t bytes);
  // Until all that is enqueued has run. `link`: is asked for trouble meanwhile; null: none.
  Status Finish(NcclLink* link);
  Patience::Over Over() const;
  Status GiveOut(const engine::Part& part, const engine::Request& request, const std::byte* from,
                 engine::Operation* operation, std::shared_ptr<engine::Buffer>* gathered);
  void EndWhatRuns(const std::vector<NcclGroup*>& groups);

  const Gpu gpu_;
  engine::Backend* const on_host_;
  const Limits limits_;
  int device_;

  Communicator* host_ = nullptr;            // null: no view
  uint64_t epoch_ = 0;                      // of the view
  std::atomic<uint64_t> aborted_epoch_{0};  // views up to this one are over
  Ranks world_;
  std::map<int32_t, Ranks> sets_;  // of this view, by number
  Ranks* on_ = nullptr;
  bool broken_ = false;      // the device did not come to rest: nothing can be run on it any more
  bool in_trouble_ = false;  // a communicator of this view has failed: none of them is kept
  int failed_connects_ = 0;  // in a row
  bool said_why_ = false;

  DevicePool pool_;
  GpuStream stream_;
  // Buffers that what is enqueued reads and writes.
  std::vector<std::shared_ptr<engine::Buffer>> in_use_;
};

}  // namespace ringmaster::nccl
