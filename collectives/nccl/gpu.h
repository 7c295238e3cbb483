// The GPU libraries that this process can use.
//
// Thread rule: a value; ThisMachinesGpu() from any thread.
#pragma once

#include <memory>
#include <string>

#include "collectives/nccl/cuda_api.h"
#include "collectives/nccl/nccl_api.h"
#include "ringmaster/status.h"

namespace ringmaster::nccl {

struct Gpu {
  // Null: there is no CUDA runtime, or no device that it can use; `no_cuda` says which.
  std::shared_ptr<CudaApi> cuda;
  std::string no_cuda;
  int devices = 0;
  // Null: the GPU's tensors go through the host's memory; `no_nccl` says why.
  std::shared_ptr<NcclApi> nccl;
  std::string no_nccl;
  // What can't be used is a library that is not there: it may come later, with a framework that the
  // script imports.
  bool may_come = false;

  // OK if NCCL can be used; else RM_ERR_UNAVAILABLE with the reason.
  Status Check() const {
    if (cuda == nullptr) return {RM_ERR_UNAVAILABLE, no_cuda};
    if (nccl == nullptr) return {RM_ERR_UNAVAILABLE, no_nccl};
    return {};
  }
};

// What this process has. The first call looks for the libraries. What it finds is kept; whether
// something that was not there has been loaded since then, each later call looks.
Gpu ThisMachinesGpu();

}  // namespace ringmaster::nccl
