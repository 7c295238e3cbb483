#include "collectives/nccl/device_buffers.h"

#include <string>

namespace ringmaster::nccl {

using engine::Buffer;

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
  for (auto& buffer : in_use_) new std::shared_ptr<Buffer>(buffer);
  pool_.Abandon();
}

}  // namespace ringmaster::nccl
