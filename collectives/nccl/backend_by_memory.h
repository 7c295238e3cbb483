// The backend of a worker that may have tensors in both memories: operations on tensors in the
// host's memory go to the backend for those (CpuBackend), those on tensors in a GPU's memory to
// NcclBackend. All ranks have agreed on which it is.
//
// The GPU's libraries are looked for when the first such tensor comes.
//
// Owner: the engine's Pipeline. Thread rule: Abort() from any thread, the rest from the engine's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/engine/cpu_backend.h"
#include "collectives/nccl/nccl_backend.h"
#include "common/sync/mutex.h"

namespace ringmaster::nccl {

class BackendByMemory : public engine::Backend {
 public:
  // `gpu` finds the GPU libraries. It is called when an operation on a GPU comes and there is no
  // NcclBackend yet. `on_host` is for the host's memory. The others are as for NcclBackend.
  BackendByMemory(std::function<Gpu()> gpu, int device, WaitLimits limits, bool needs_nccl = false,
                  std::unique_ptr<engine::Backend> on_host = std::make_unique<engine::CpuBackend>())
      : find_gpu_(std::move(gpu)),
        device_(device),
        limits_(limits),
        needs_nccl_(needs_nccl),
        on_host_(std::move(on_host)) {}

  void ExpectView(bool planned) override {
    if (on_gpu_ != nullptr) on_gpu_->ExpectView(planned);
  }
  void Install(Communicator* host, const std::vector<std::string>& workers) override;
  void Uninstall() override;
  void ForgetSet(int32_t process_set) override;
  bool RunsAlone(const engine::Request& request) const override {
    return !request.on_gpu && on_host_->RunsAlone(request);
  }
  Status Execute(const engine::Response& response, const engine::PendingTable& pending,
                 engine::Retained* result) override;
  Status Confirm() override { return last_->Confirm(); }
  void Withdraw(engine::Retained* result, const engine::PendingTable& pending) override;
  Status HandOver(int holder, const engine::Retained* held, engine::Retained* result) override;
  bool Publish(const engine::Retained& result, engine::PendingTable* pending) override;
  void Abort(uint64_t epoch) override;

 private:
  // This rank takes part in it, and it runs: ranks have not disagreed on it.
  bool RunsHere(const engine::Response& response) const;
  Status MakeOnGpu();
  // The backend that has executed this result.
  engine::Backend* Of(const engine::Response& response);

  const std::function<Gpu()> find_gpu_;
  const int device_;
  const WaitLimits limits_;
  const bool needs_nccl_;
  const std::unique_ptr<engine::Backend> on_host_;
  engine::Backend* last_ = on_host_.get();  // which of the two has executed last
  Communicator* host_ = nullptr;            // null: no view
  std::vector<std::string> workers_;

  sync::Mutex mu_;
  // Made on the engine's thread, which reads it without the lock.
  std::unique_ptr<NcclBackend> on_gpu_;
  // The same backend, for Abort().
  NcclBackend* to_abort_ GUARDED_BY(mu_) = nullptr;
  uint64_t aborted_epoch_ GUARDED_BY(mu_) = 0;
};

}  // namespace ringmaster::nccl
