// Starts watching the health of this worker's GPU when the worker first uses it, unless it was told
// not to. Where there is no NVML nothing is watched, and nobody need know.
//
// Owner: TrainingProcess. Thread rule: any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "collectives/gpu_health/gpu_monitor.h"
#include "collectives/gpu_health/real_nvml.h"
#include "collectives/nccl/gpu.h"

namespace ringmaster::elastic {

class GpuWatch {
 public:
  // `gpu` finds the GPU libraries; it is called once the worker has used a GPU.
  GpuWatch(bool on, std::function<nccl::Gpu()> gpu,
           std::shared_ptr<gpu_health::LatestHealth> latest)
      : on_(on), find_gpu_(std::move(gpu)), latest_(std::move(latest)) {}

  // The worker uses this device of CUDA's; -1: none yet.
  void Uses(int device) {
    if (on_ && device >= 0) std::call_once(begun_, [this, device] { Begin(device); });
  }

 private:
  void Begin(int device) {
    std::shared_ptr<gpu_health::NvmlApi> nvml;
    if (!gpu_health::LoadNvml(&nvml).ok()) return;
    const std::shared_ptr<nccl::CudaApi> cuda = find_gpu_().cuda;
    if (cuda == nullptr) return;
    const auto bus_id = [cuda, device] {
      std::string id;
      return cuda->DeviceGetPciBusId(device, &id) == nccl::kCudaSuccess ? id : std::string();
    };
    monitor_ = std::make_unique<gpu_health::GpuMonitor>(std::move(nvml), bus_id, latest_);
  }

  const bool on_;
  const std::function<nccl::Gpu()> find_gpu_;
  const std::shared_ptr<gpu_health::LatestHealth> latest_;
  std::once_flag begun_;
  std::unique_ptr<gpu_health::GpuMonitor> monitor_;
};

}  // namespace ringmaster::elastic
