#include "collectives/nccl/gpu.h"

#include <utility>

#include "collectives/nccl/real_cuda.h"
#include "collectives/nccl/real_nccl.h"

namespace ringmaster::nccl {
namespace {

Status FindDevices(Gpu* gpu) {
  std::unique_ptr<CudaApi> cuda;
  if (Status s = LoadCuda(&cuda); !s.ok()) return s;
  if (const CudaResult r = cuda->GetDeviceCount(&gpu->devices); r != kCudaSuccess) {
    return {RM_ERR_UNAVAILABLE, "no GPU can be used: " + cuda->ErrorString(r)};
  }
  if (gpu->devices == 0) return {RM_ERR_UNAVAILABLE, "CUDA finds no GPU"};
  gpu->cuda = std::move(cuda);
  return {};
}

Gpu* Look() {
  auto* gpu = new Gpu;
  gpu->no_cuda = FindDevices(gpu).message();
  std::unique_ptr<NcclApi> nccl;
  gpu->no_nccl = LoadNccl(&nccl).message();
  gpu->nccl = std::move(nccl);
  return gpu;
}

}  // namespace

const Gpu& ThisMachinesGpu() {
  static const Gpu* const gpu = Look();
  return *gpu;
}

}  // namespace ringmaster::nccl
