// Whether this process is at its exit. NCCL and CUDA end themselves then, in handlers that may have
// run already, so whoever would give back what they have given leaves it to the end of the process.
//
// Thread rule: any thread.
#pragma once

#include <atomic>

namespace ringmaster::nccl {

inline std::atomic<bool>& ProcessExits() {
  static std::atomic<bool> exits{false};
  return exits;
}

}  // namespace ringmaster::nccl
