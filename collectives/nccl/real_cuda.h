// The CUDA runtime of this machine.
//
// Thread rule: any thread.
#pragma once

#include <memory>

#include "collectives/nccl/cuda_api.h"
#include "collectives/shared_library/shared_library.h"

namespace ringmaster::nccl {

// RM_ERR_UNAVAILABLE: there is none, or one that lacks what we need. *missing: there is none.
Status LoadCuda(SharedLibrary::Where where, std::unique_ptr<CudaApi>* out, bool* missing);
// The same with this file or library name.
Status LoadCudaFrom(const char* name, std::unique_ptr<CudaApi>* out);

}  // namespace ringmaster::nccl
