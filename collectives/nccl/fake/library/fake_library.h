// The only fake GPU of a process that has loaded the fake as its libnccl.so.2 and libcudart.so.
//
// Thread rule: any thread.
#pragma once

#include "collectives/nccl/cuda_api.h"
#include "collectives/nccl/nccl_api.h"

namespace ringmaster::nccl {

// Made at the first use, and never ended: like a GPU's, its threads end with the process.
//
//   RINGMASTER_FAKE_GPU_FOLDER  where the ranks' files lie: the same folder for all of them. There
//                               events.PID has a line for each communicator that was made, and for
//                               each wrong use
//   RINGMASTER_FAKE_GPUS        devices, by default 1
//   RINGMASTER_FAKE_NCCL        the version of NCCL, by default 23203
//   RINGMASTER_FAKE_BLOCKING    1: blocking communicators are no wrong use, as a yardstick
NcclApi& FakeLibraryNccl();
CudaApi& FakeLibraryCuda();

// For tests, beside what NCCL and CUDA have:
extern "C" {
// A "kernel" that runs until fake_gpu_release().
void fake_gpu_hold(void* stream);
void fake_gpu_release();
}

}  // namespace ringmaster::nccl
