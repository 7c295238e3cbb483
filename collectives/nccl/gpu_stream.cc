#include "collectives/nccl/gpu_stream.h"

#include <utility>

#include "collectives/nccl/on_device.h"

namespace ringmaster::nccl {

Status StatusOf(CudaApi* cuda, CudaResult result, const std::string& what) {
  if (result == kCudaSuccess) return {};
  const rm_status code = result == kCudaMemoryAllocation ? RM_ERR_OUT_OF_MEMORY : RM_ERR_INTERNAL;
  return {code, "CUDA: " + what + ": " + cuda->ErrorString(result)};
}

GpuStream::~GpuStream() {
  // What hangs on the stream would make its destruction hang, too.
  if (!runs_ && stream_ != nullptr) RunOnDevice(cuda_.get(), device_, [this] { Destroy(); });
}

void GpuStream::Destroy() {
  if (event_ != nullptr) (void)cuda_->EventDestroy(event_);
  if (stream_ != nullptr) (void)cuda_->StreamDestroy(stream_);
  event_ = stream_ = nullptr;
}

Status GpuStream::Use(int device) {
  if (Status s = StatusOf(cuda_.get(), EnterDevice(cuda_.get(), device), "using the device");
      !s.ok())
    return s;
  if (std::exchange(device_, device) != device && !runs_) Destroy();
  if (stream_ == nullptr) {
    if (Status s = StatusOf(cuda_.get(), cuda_->StreamCreate(&stream_), "making a stream"); !s.ok())
      return s;
  }
  if (event_ != nullptr) return {};
  return StatusOf(cuda_.get(), cuda_->EventCreate(&event_), "making an event");
}

std::optional<Status> GpuStream::Reached(const void* event) {
  if (event == nullptr) return Status();
  const CudaResult result = cuda_->EventQuery(const_cast<void*>(event));
  if (result == kCudaNotReady) return std::nullopt;
  return StatusOf(cuda_.get(), result, "the input's event");
}

Status GpuStream::Copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || to == from) return {};
  return StatusOf(cuda_.get(), cuda_->MemcpyAsync(to, from, bytes, stream_), "copying");
}

Status GpuStream::Mark() {
  runs_ = true;
  return StatusOf(cuda_.get(), cuda_->EventRecord(event_, stream_), "recording an event");
}

std::optional<Status> GpuStream::Ended() {
  if (!runs_) return Status();
  const CudaResult result = cuda_->EventQuery(event_);
  if (result == kCudaNotReady) return std::nullopt;
  runs_ = false;
  return StatusOf(cuda_.get(), result, "a collective or copy");
}

}  // namespace ringmaster::nccl
