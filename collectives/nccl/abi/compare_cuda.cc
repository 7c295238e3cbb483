// Compiled by nccl_abi_test against CUDA's own headers: fails where cuda_api.h says something else.
#include <driver_types.h>

#include "collectives/nccl/cuda_api.h"

namespace ours = ringmaster::nccl;

static_assert(ours::kCudaSuccess == cudaSuccess);
static_assert(ours::kCudaMemoryAllocation == cudaErrorMemoryAllocation);
static_assert(ours::kCudaNotReady == cudaErrorNotReady);
static_assert(ours::kCudaNotSupported == cudaErrorNotSupported);
static_assert(ours::kStreamNonBlocking == cudaStreamNonBlocking);
static_assert(ours::kEventDisableTiming == cudaEventDisableTiming);
static_assert(ours::kMemcpyDefault == cudaMemcpyDefault);
static_assert(ours::kCaptureModeGlobal == cudaStreamCaptureModeGlobal);
static_assert(ours::kCaptureModeRelaxed == cudaStreamCaptureModeRelaxed);
static_assert(sizeof(cudaStreamCaptureMode) == sizeof(int));
