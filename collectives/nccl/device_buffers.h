// The buffers of operations in progress. What is enqueued on the device reads and writes them, so
// they are held until all of that has run.
//
// Thread rule: the engine's.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "collectives/engine/response.h"
#include "collectives/nccl/cuda_api.h"
#include "collectives/nccl/device_pool.h"

namespace ringmaster::nccl {

// RM_ERR_OUT_OF_MEMORY with a message. `where`: "on the GPU", for example.
Status NoMemory(uint64_t bytes, const char* where);

class DeviceBuffers {
 public:
  explicit DeviceBuffers(std::shared_ptr<CudaApi> cuda) : pool_(std::move(cuda)) {}

  // A buffer on the device; null: there is no memory.
  std::shared_ptr<engine::Buffer> Take(uint64_t bytes);
  Status TakeFor(engine::Part* part, uint64_t bytes);
  // Holds a buffer on the host that this class has not made.
  void Hold(std::shared_ptr<engine::Buffer> buffer) { in_use_.push_back(std::move(buffer)); }
  // To be called when all that was enqueued has run.
  void LetGo() { in_use_.clear(); }
  // To be called when it will never be known whether all has run. What still runs may write to
  // these buffers, so they are never used again.
  void Abandon();
  // Buffers are on this device from now on.
  void Use(int device) { pool_.Use(device); }

 private:
  DevicePool pool_;
  std::vector<std::shared_ptr<engine::Buffer>> in_use_;
};

}  // namespace ringmaster::nccl
