// Runs something of CUDA's or NCCL's with a device as the current one, whatever thread asks for it.
//
// Most of their functions begin to use the thread's current device, which is device 0 on a thread
// that has set none. All workers of a pod would so take memory on GPU 0, and fail if it is lost. A
// thread that isn't ours keeps its own device, so this is done on a thread of its own.
//
// Thread rule: any thread.
#pragma once

#include <functional>
#include <thread>

#include "collectives/nccl/cuda_api.h"

namespace ringmaster::nccl {

// For threads of our own, at their beginning.
inline CudaResult EnterDevice(CudaApi* cuda, int device) {
  // A thread of the user's may capture a graph. What we do has nothing to do with it, and in the
  // usual mode would fail, and spoil the capture.
  int mode = kCaptureModeRelaxed;
  (void)cuda->ThreadExchangeStreamCaptureMode(&mode);
  return cuda->SetDevice(device);
}

inline void RunOnDevice(CudaApi* cuda, int device, const std::function<void()>& run) {
  std::thread([&] {
    (void)EnterDevice(cuda, device);
    run();
  }).join();
}

}  // namespace ringmaster::nccl
