// Buffers of the operations that are on their way: what is enqueued on the device reads and writes
// them, so they are held until it has come to rest.
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

// `where`: "on the GPU", for example.
Status NoMemory(uint64_t bytes, const char* where);

class DeviceBuffers {
 public:
  explicit DeviceBuffers(std::shared_ptr<CudaApi> cuda) : pool_(std::move(cuda)) {}

  // On the device. Null: there is no memory.
  std::shared_ptr<engine::Buffer> Take(uint64_t bytes);
  Status TakeFor(engine::Part* part, uint64_t bytes);
  // Holds a buffer on the host that this class has not made.
  void Hold(std::shared_ptr<engine::Buffer> buffer) { in_use_.push_back(std::move(buffer)); }
  // All that was enqueued has run.
  void LetGo() { in_use_.clear(); }
  // Nobody will ever know whether all has run: what still runs may write to these buffers, so they
  // are never used again.
  void Abandon();
  // Another device is used from now on.
  void FreeUnused() { pool_.FreeUnused(); }

 private:
  DevicePool pool_;
  std::vector<std::shared_ptr<engine::Buffer>> in_use_;
};

}  // namespace ringmaster::nccl
