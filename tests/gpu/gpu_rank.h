// One rank of the GPU tests: a backend, a view, memory on the GPU.
//
// Thread rule: the rank's thread; Abort() from any.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/nccl/backend_by_memory.h"
#include "tests/gpu/thread_communicator.h"

namespace ringmaster::gpu_test {

class GpuRank {
 public:
  GpuRank(nccl::Gpu gpu, int device)
      : gpu_(std::move(gpu)),
        device_(device),
        backend_([this]() -> const nccl::Gpu& { return gpu_; }, device, nccl::Limits()),
        stream_(gpu_.cuda) {}
  ~GpuRank() {
    Leave();
    for (void* data : allocated_) (void)gpu_.cuda->Free(data);
  }

  nccl::Gpu& gpu() { return gpu_; }
  int rank() const { return host_->rank(); }
  int size() const { return host_->size(); }
  Communicator* host() { return host_.get(); }
  // The calling thread's device is the rank's.
  Status Use() { return stream_.Use(device_); }
  // The rank's own stream, beside the backend's.
  nccl::GpuStream& stream() { return stream_; }

  Status Enter(std::shared_ptr<Meeting> meeting, int rank, uint64_t epoch) {
    Leave();
    host_ = std::make_unique<ThreadCommunicator>(std::move(meeting), rank, epoch);
    std::vector<std::string> workers;
    for (int r = 0; r < host_->size(); ++r) workers.push_back("worker " + std::to_string(r));
    backend_.Install(host_.get(), workers);
    return stream_.Use(device_);
  }
  void Leave() {
    if (host_ != nullptr) backend_.Uninstall();
    host_ = nullptr;
  }
  void Abort(uint64_t epoch) { backend_.Abort(epoch); }

  // ---- Memory
  void* Allocate(size_t bytes) {
    void* data = nullptr;
    (void)gpu_.cuda->Malloc(&data, bytes);
    allocated_.push_back(data);
    return data;
  }
  Status Copy(void* to, const void* from, size_t bytes) {
    if (Status s = stream_.Copy(to, from, bytes); !s.ok()) return s;
    return Finish();
  }
  Status Finish() {
    if (Status s = stream_.Mark(); !s.ok()) return s;
    return nccl::Patience(std::chrono::seconds(60), {}).Await("the stream", [&] {
      return stream_.Ended();
    });
  }
  template <typename T>
  T* Upload(const std::vector<T>& values) {
    T* data = static_cast<T*>(Allocate(values.size() * sizeof(T)));
    (void)Copy(data, values.data(), values.size() * sizeof(T));
    return data;
  }
  template <typename T>
  std::vector<T> Download(const void* data, size_t count) {
    std::vector<T> values(count);
    (void)Copy(values.data(), data, count * sizeof(T));
    return values;
  }

  // ---- Collectives, as the engine runs what has been agreed on
  using Asked = std::shared_ptr<engine::Operation>;
  Asked Ask(engine::Request request, const void* in, void* out, size_t rows = 0,
            engine::Operation::Splits splits = {}) {
    request.on_gpu = true;
    return std::make_shared<engine::Operation>(std::move(request), in, out, rows, std::move(splits),
                                               engine::Operation::OnDevice{.device = device_});
  }
  // Until its result is in place.
  Status Run(const Asked& operation, int root = -1) {
    engine::PendingTable pending;
    pending.Add(operation);
    engine::Response response = engine::Response::Of({operation->request});
    response.roots = {root};
    engine::Retained result;
    if (Status s = backend_.Execute(response, pending, &result); !s.ok()) return s;
    if (response.has_own_results()) {
      if (Status s = backend_.Confirm(); !s.ok()) return s;
    }
    (void)backend_.Publish(result, &pending);
    return operation->status();
  }

 private:
  nccl::Gpu gpu_;
  const int device_;
  nccl::BackendByMemory backend_;
  nccl::GpuStream stream_;
  std::unique_ptr<ThreadCommunicator> host_;
  std::vector<void*> allocated_;
};

}  // namespace ringmaster::gpu_test
