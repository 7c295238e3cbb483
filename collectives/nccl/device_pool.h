// Memory of one GPU for fused and retained results, used again where it can be.
//
// CUDA frees memory only when the device stands still, which it may not do while a peer is dead: so
// what is released goes back to the pool, and the pool frees where it knows that nothing runs.
//
// Thread rule: Get() and Close() on the engine's thread; buffers may be released anywhere.
#pragma once

#include <map>
#include <memory>

#include "collectives/engine/buffer.h"
#include "collectives/nccl/cuda_api.h"
#include "common/sync/mutex.h"

namespace ringmaster::nccl {

class DevicePool {
 public:
  explicit DevicePool(std::shared_ptr<CudaApi> cuda)
      : kept_(std::make_shared<Kept>(std::move(cuda))) {}
  ~DevicePool();

  // On the calling thread's device; nothing of ours runs there. Null when there is no memory.
  std::shared_ptr<engine::Buffer> Get(size_t bytes);
  void FreeUnused() { kept_->FreeAll(); }
  // The device will never stand still: nothing of it is ever freed or used again.
  void Abandon() { kept_->Abandon(); }

 private:
  // Outlives the pool as long as a buffer does.
  struct Kept {
    explicit Kept(std::shared_ptr<CudaApi> cuda) : cuda(std::move(cuda)) {}
    void Release(std::byte* data, size_t capacity);
    std::byte* Take(size_t* capacity);
    void FreeAll();
    void Abandon();

    const std::shared_ptr<CudaApi> cuda;
    sync::Mutex mu;
    std::multimap<size_t, std::byte*> free GUARDED_BY(mu);  // by capacity
    bool closed GUARDED_BY(mu) = false, abandoned GUARDED_BY(mu) = false;
  };
  const std::shared_ptr<Kept> kept_;
};

}  // namespace ringmaster::nccl
