// One rank of the GPU tests, which is a process: a backend, a view, memory on the GPU.
//
// Thread rule: the rank's thread. A thread of its own ends what waits when the board says that the
// view is over.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/nccl/backend_by_memory.h"
#include "tests/gpu/board_communicator.h"
#include "tests/gpu/verdicts.h"

namespace ringmaster::gpu_test {

class GpuRank {
 public:
  GpuRank(DrillBoard* board, const nccl::Gpu& gpu, int device, nccl::WaitLimits limits)
      : board_(board),
        gpu_(gpu),
        device_(device),
        backend_([this] { return gpu_; }, device, limits),
        stream_(gpu.cuda),
        watch_([this](const std::stop_token& stop) { Watch(stop); }) {}
  ~GpuRank() {
    Leave();
    for (void* data : allocated_) (void)gpu_.cuda->Free(data);
  }

  const nccl::Gpu& gpu() const { return gpu_; }
  int device() const { return device_; }
  DrillBoard& board() { return *board_; }
  int rank() const { return host_->rank(); }
  int size() const { return host_->size(); }
  Communicator* host() { return host_.get(); }
  // The rank's own stream, beside the backend's.
  nccl::GpuStream& stream() { return stream_; }

  // The first `size` ranks call it.
  Status Enter(int rank, int size, uint64_t epoch) {
    Leave();
    host_ = std::make_unique<BoardCommunicator>(board_, rank, size, epoch);
    std::vector<std::string> workers;
    for (int r = 0; r < size; ++r) workers.push_back("worker " + std::to_string(r));
    backend_.Install(host_.get(), workers);
    return stream_.Use(device_);
  }
  void Leave() {
    if (host_ != nullptr) backend_.Uninstall();
    host_ = nullptr;
  }

  // ---- Memory
  void* Allocate(size_t bytes) {
    void* data = nullptr;
    Check(board_, nccl::StatusOf(gpu_.cuda.get(), gpu_.cuda->Malloc(&data, bytes), "memory"),
          std::to_string(bytes) + " bytes on the GPU");
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
    Check(board_, Copy(data, values.data(), values.size() * sizeof(T)), "a copy to the GPU");
    return data;
  }
  template <typename T>
  std::vector<T> Download(const void* data, size_t count) {
    std::vector<T> values(count);
    Check(board_, Copy(values.data(), data, count * sizeof(T)), "a copy from the GPU");
    return values;
  }

  // ---- Collectives, as the engine runs what has been agreed on
  using Asked = std::shared_ptr<engine::Operation>;
  Asked Ask(engine::Request request, const void* in, void* out, size_t rows = 0,
            engine::Operation::Splits splits = {}, const void* ready = nullptr) {
    request.on_gpu = true;
    return std::make_shared<engine::Operation>(
        std::move(request), in, out, rows, std::move(splits),
        engine::Operation::OnDevice{.device = device_, .ready_event = ready});
  }
  Asked AskSum(const void* in, void* out, uint64_t floats, const void* ready = nullptr) {
    return Ask({"x", engine::Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", floats, 1, 1}, in, out, 0,
               {}, ready);
  }
  // Until its result is in place.
  Status Run(const Asked& operation, int root = -1) {
    engine::Retained result;
    if (Status s = Execute(operation, &result, root); !s.ok()) return s;
    return Publish(operation, result);
  }
  // The two halves of it, and what may lie between them: rank 0 hands its result over.
  Status Execute(const Asked& operation, engine::Retained* result, int root = -1) {
    engine::PendingTable pending;
    pending.Add(operation);
    engine::Response response = engine::Response::Of({operation->request});
    response.roots = {root};
    if (Status s = backend_.Execute(response, pending, result); !s.ok()) return s;
    return response.needs_confirmation() ? backend_.Confirm() : Status();
  }
  Status HandOver(const engine::Retained& held, engine::Retained* handed) {
    *handed = {held.response, {}};
    for (const engine::Part& part : held.parts) {
      handed->parts.push_back({nullptr, part.bytes, part.rows_by_rank});
    }
    return backend_.HandOver(0, rank() == 0 ? &held : nullptr, handed);
  }
  Status Publish(const Asked& operation, const engine::Retained& result) {
    engine::PendingTable pending;
    pending.Add(operation);
    (void)backend_.Publish(result, &pending);
    return operation->status();
  }

 private:
  void Watch(const std::stop_token& stop) {
    uint64_t known = 0;
    while (!stop.stop_requested()) {
      const uint64_t now = board_->aborted_epoch;
      if (now > known) backend_.Abort(known = now);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  DrillBoard* const board_;
  const nccl::Gpu& gpu_;
  const int device_;
  nccl::BackendByMemory backend_;
  nccl::GpuStream stream_;
  std::unique_ptr<BoardCommunicator> host_;
  std::vector<void*> allocated_;
  std::jthread watch_;  // last: it uses the others
};

}  // namespace ringmaster::gpu_test
