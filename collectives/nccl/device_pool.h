// Memory of one GPU for fused and retained results, used again where it can be.
//
// cudaFree() waits until the device is idle, which it may never be while a kernel waits for a dead
// peer. So memory that is released goes back to the pool, and the pool frees it only where it is
// known that nothing runs.
//
// Thread rule: the engine's; buffers may be released on any thread.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "collectives/engine/buffer.h"
#include "collectives/nccl/cuda_api.h"
#include "common/sync/mutex.h"

namespace ringmaster::nccl {

class DevicePool {
 public:
  explicit DevicePool(std::shared_ptr<CudaApi> cuda)
      : kept_(std::make_shared<Kept>(std::move(cuda))) {}
  ~DevicePool();

  // Memory on the device in use, which is also the calling thread's; if there is too little, what
  // is unused is freed, so nothing of ours may run there. Null: there is none.
  std::shared_ptr<engine::Buffer> Get(size_t bytes);
  // Memory is on this device from now on. What is unused on another one is freed.
  void Use(int device);
  // The device will never be idle again: none of its memory is ever freed or used again.
  void Abandon() { kept_->Abandon(); }

 private:
  // Lives as long as the pool or one of its buffers does.
  struct Kept {
    explicit Kept(std::shared_ptr<CudaApi> cuda) : cuda(std::move(cuda)) {}
    void Release(std::byte* data, size_t capacity, int device);
    std::byte* Take(size_t* capacity);
    std::vector<std::byte*> TakeAll() REQUIRES(mu);
    void FreeAll();
    void Free(int device, const std::vector<std::byte*>& blocks);
    void Abandon();

    const std::shared_ptr<CudaApi> cuda;
    sync::Mutex mu;
    int in_use GUARDED_BY(mu) = 0;                          // device
    std::multimap<size_t, std::byte*> free GUARDED_BY(mu);  // on that device, by capacity
    bool closed GUARDED_BY(mu) = false, abandoned GUARDED_BY(mu) = false;
  };
  const std::shared_ptr<Kept> kept_;
};

}  // namespace ringmaster::nccl
