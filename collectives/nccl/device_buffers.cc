#include "collectives/nccl/device_buffers.h"

#include <string>

#include "common/sync/mutex.h"

namespace ringmaster::nccl {

using engine::Buffer;

namespace {

// Holds the buffers until the process ends. They stay reachable, so that a leak checker doesn't
// report them.
void HoldForEver(const std::vector<std::shared_ptr<Buffer>>& buffers) {
  struct Abandoned {
    sync::Mutex mu;
    std::vector<std::shared_ptr<Buffer>> all GUARDED_BY(mu);
  };
  static auto& abandoned = *new Abandoned;  // never destroyed: a kernel may still run at exit
  const sync::MutexLock lock(&abandoned.mu);
  abandoned.all.insert(abandoned.all.end(), buffers.begin(), buffers.end());
}

}  // namespace

Status NoMemory(uint64_t bytes, const char* where) {
  return {RM_ERR_OUT_OF_MEMORY, std::string("no memory ") + where + " for a buffer of " +
                                    std::to_string(bytes) + " bytes"};
}

std::shared_ptr<Buffer> DeviceBuffers::Take(uint64_t bytes) {
  auto buffer = pool_.Get(bytes);
  if (buffer != nullptr) in_use_.push_back(buffer);
  return buffer;
}

Status DeviceBuffers::TakeFor(engine::Part* part, uint64_t bytes) {
  part->bytes = bytes;
  part->data = Take(bytes);
  return part->data == nullptr ? NoMemory(bytes, "on the GPU") : Status();
}

void DeviceBuffers::Abandon() {
  HoldForEver(in_use_);
  pool_.Abandon();
}

}  // namespace ringmaster::nccl
