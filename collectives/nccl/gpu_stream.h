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
  // If something still runs, the stream and its event are leaked.
  ~GpuStream();
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;

  // Makes `device` the device of the calling thread, with the stream on it. Not to be called while
  // something runs on another device.
  Status Use(int device);
  void* get() const { return stream_; }

  // Whether the caller's stream has come to this event of its; no value: not yet. Null: it is
  // nothing that anybody waits for.
  std::optional<Status> Reached(const void* event);
  // Copies between host and device in any direction. If host memory that isn't pinned is involved,
  // the call itself may wait for what is enqueued before it. That is never the user's work: it is
  // waited for (Reached) before anything is enqueued.
  Status Copy(void* to, const void* from, size_t bytes);
  // Ended() then tells about everything that has been enqueued until now.
  Status Mark();
  // How the marked work has ended; no value: it still runs.
  std::optional<Status> Ended();
  // Leaves stream and event to the end of the process.
  void Leak() {
    stream_ = event_ = nullptr;
    runs_ = false;
  }
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
