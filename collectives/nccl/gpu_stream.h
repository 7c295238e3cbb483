// A stream of our own on one GPU, beside those of the framework, and the event that tells how far
// it has got.
//
// Owner: NcclBackend. Thread rule: the engine's thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "collectives/nccl/cuda_api.h"
#include "ringmaster/status.h"

namespace ringmaster::nccl {

Status StatusOf(CudaApi* cuda, CudaResult result, const std::string& what);

class GpuStream {
 public:
  explicit GpuStream(std::shared_ptr<CudaApi> cuda) : cuda_(std::move(cuda)) {}
  // What still runs is left to itself.
  ~GpuStream();
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;

  // Makes `device` the calling thread's; the stream is on it.
  Status Use(int device);  // not while something runs on another one
  void* get() const { return stream_; }

  // What is enqueued from now on waits for this event of the caller's; null: for nothing.
  Status WaitFor(const void* event);
  // From and to host or device. Host memory that isn't pinned may make the call itself wait for
  // what is enqueued before.
  Status Copy(void* to, const void* from, size_t bytes);
  // From now on Ended() is about everything that has been enqueued so far.
  Status Mark();
  // How the marked work has ended; nothing: it still runs.
  std::optional<Status> Ended();
  // Something was marked and has not been seen to have ended.
  bool runs() const { return runs_; }

 private:
  void Destroy();

  const std::shared_ptr<CudaApi> cuda_;
  int device_ = -1;  // of the stream
  void* stream_ = nullptr;
  void* event_ = nullptr;
  bool runs_ = false;
};

}  // namespace ringmaster::nccl
