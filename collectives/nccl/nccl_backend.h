// The backend for tensors in a GPU's memory: NCCL moves and reduces them there.
//
// What NCCL doesn't offer (ReductionFor), and everything if some rank has no NCCL, goes through the
// host's memory and the host's backend: that is slower, with the same results.
//
// A result is kept in a buffer of this backend, on the device or on the host (CUDA's copies find
// out which). It is final: the postscale is in it already.
//
// The backend waits for NCCL and for the device by asking again and again, up to a limit and until
// Abort(). Inputs stay intact, so an operation that was interrupted can run again in the next view.
//
// Thread rule: Abort() from any thread, the rest from the engine's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/engine/backend.h"
#include "collectives/nccl/connector.h"
#include "collectives/nccl/device_buffers.h"
#include "collectives/nccl/gpu.h"
#include "collectives/nccl/gpu_stream.h"
#include "collectives/nccl/nccl_operations.h"
#include "collectives/nccl/rank_groups.h"
#include "collectives/nccl/view_end.h"

namespace ringmaster::nccl {

class NcclBackend : public engine::Backend {
 public:
  // `gpu` has CUDA. `on_host` runs what goes through the host's memory; its owner installs it
  // before this one and uninstalls it after. `device`: the device to use while this worker has no
  // tensor of its own in an operation (it has joined). `needs_nccl`: as for Connector.
  NcclBackend(const Gpu& gpu, engine::Backend* on_host, int device, WaitLimits limits,
              bool needs_nccl = false);
  ~NcclBackend() override;

  void ExpectView(bool planned) override { ranks_.ExpectView(planned); }
  void Install(Communicator* host, const std::vector<std::string>& workers) override;
  void Uninstall() override;
  void ForgetSet(int32_t process_set) override;
  Status Execute(const engine::Response& response, const engine::PendingTable& pending,
                 engine::Retained* result) override;
  Status Confirm() override { return on_->host->Barrier(); }
  Status HandOver(int holder, const engine::Retained* held, engine::Retained* result) override;
  bool Publish(const engine::Retained& result, engine::PendingTable* pending) override;
  void Abort(uint64_t epoch) override { view_.Abort(epoch); }

 private:
  // RM_ERR_INTERNAL: nothing can be enqueued on the device any more, because it would wait for
  // ever, in part inside the call.
  Status CheckDevice() const;
  Status Prepare(const engine::Response& response, const engine::PendingTable& pending);
  Status RunBatch(const Work& work);
  // Waits until the caller's stream has come to the operation's event. No stream waits for it:
  // whatever is enqueued behind a user's work can't be ended, nor told from what hangs, when a peer
  // dies.
  Status AwaitReady(const engine::Operation& operation, const Patience& patience);
  // NCCL's communicator for this work. Null: NCCL can't do it, and the host's backend does.
  NcclLink* LinkFor(const Work& work, std::vector<NcclReduction>* reductions);
  Status RunOnHost(const Work& work);
  Status Finalize(const Work& work);
  Status CopyToHost(const engine::Operation& operation, std::shared_ptr<engine::Buffer>* copy);

  // Waits until everything that is enqueued has run. Meanwhile `link` is asked for errors; null:
  // there is none to ask.
  Status Finish(NcclLink* link);
  Status GiveOut(const engine::Part& part, const engine::Request& request, const std::byte* from,
                 engine::Operation* operation, std::shared_ptr<engine::Buffer>* gathered);
  void EndWhatRuns();
  // Leaves everything on the device to the end of the process.
  void Leak();
  // Waits for the aborts that are under way. When nothing of ours runs on the device they may still
  // take as long as the user's work, for which the device waits before it frees their memory. Until
  // then no other communicator is made, because that takes memory. An error other than that of the
  // patience: as for CheckDevice().
  Status AwaitAborted(const Patience& patience);
  bool Revoke(const std::vector<NcclGroup*>& groups);

  const Gpu gpu_;
  engine::Backend* const on_host_;
  const WaitLimits limits_;
  int device_;

  ViewEnd view_;
  Communicator* host_ = nullptr;  // null: no view
  RankGroup* on_ = nullptr;       // the ranks that take part in the operation that runs
  std::string broken_;  // why nothing can be run on the device any more: it did not come to rest
  Ended aborted_;       // of the communicators that were given up; empty: all have ended
  bool in_trouble_ = false;  // a communicator of this view has failed: none of them is kept

  Connector connector_;
  DeviceBuffers buffers_;
  GpuStream stream_;
  RankGroups ranks_;
  NcclOperations operations_;
};

}  // namespace ringmaster::nccl
