// Checks whether this worker can take an operation on a GPU's tensor: the job allows it, there is
// such a GPU, and all tensors of the worker lie on that one.
//
// Owner: TrainingProcess. Thread rule: any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "collectives/elastic/options.h"
#include "collectives/engine/operation.h"
#include "collectives/nccl/gpu.h"

namespace ringmaster::elastic {

class DeviceCheck {
 public:
  // `gpu` finds the GPU libraries. It is not called before an operation on a GPU comes.
  DeviceCheck(BackendChoice backend, std::function<nccl::Gpu()> gpu)
      : backend_(backend), find_gpu_(std::move(gpu)) {}

  // RM_ERR_INVALID or RM_ERR_UNAVAILABLE: one of the operations can't be taken, so none of them may
  // be submitted.
  Status Check(std::span<const std::shared_ptr<engine::Operation>> operations) {
    for (const auto& operation : operations) {
      if (!operation->request.on_gpu) continue;
      if (Status s = CheckOne(*operation); !s.ok()) {
        return {s.code(), "tensor '" + operation->request.name + "': " + s.message()};
      }
    }
    return {};
  }

  // The device that this worker uses; -1: none yet.
  int device() const { return device_; }

 private:
  Status CheckOne(const engine::Operation& operation) {
    const int device = operation.on_device.device;
    if (backend_ == BackendChoice::kCpu) {
      return {RM_ERR_INVALID, "it lies on a GPU, and the job's collectives.backend is Cpu"};
    }
    const nccl::Gpu gpu = find_gpu_();
    if (gpu.cuda == nullptr) return {RM_ERR_UNAVAILABLE, gpu.no_cuda};
    if (backend_ == BackendChoice::kNccl && gpu.nccl == nullptr)
      return {RM_ERR_UNAVAILABLE, "the job's collectives.backend is Nccl: " + gpu.no_nccl};
    if (device >= gpu.devices) {
      return {RM_ERR_INVALID, "device is " + std::to_string(device + 1) + ", allowed is 0 to " +
                                  std::to_string(gpu.devices)};
    }
    int first = -1;
    if (device_.compare_exchange_strong(first, device) || first == device) return {};
    return {RM_ERR_INVALID, "device is " + std::to_string(device + 1) +
                                ", and of earlier tensors " + std::to_string(first + 1) +
                                ": a worker uses one GPU"};
  }

  const BackendChoice backend_;
  const std::function<nccl::Gpu()> find_gpu_;
  std::atomic<int> device_{-1};  // -1: none was used yet
};

}  // namespace ringmaster::elastic
