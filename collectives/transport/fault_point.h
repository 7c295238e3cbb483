// Named places where a test may kill or stop the process. Without a hook they cost one load.
#pragma once

#include <atomic>

namespace ringmaster::transport {

using FaultHook = void (*)(const char* point);

inline std::atomic<FaultHook> fault_hook{nullptr};

inline void FaultPoint(const char* point) {
  if (FaultHook hook = fault_hook.load(std::memory_order_relaxed)) hook(point);
}

}  // namespace ringmaster::transport
