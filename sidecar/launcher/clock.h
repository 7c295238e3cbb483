// The launcher's clock, as the sidecar gets it.
#pragma once

#include <chrono>
#include <cstdint>

namespace ringmaster::launcher {

using TimePoint = std::chrono::steady_clock::time_point;

// By the machine's monotonic clock. Containers of one pod share it, so the sidecar can compare.
inline int64_t MonotonicUs(TimePoint at) {
  return std::chrono::duration_cast<std::chrono::microseconds>(at.time_since_epoch()).count();
}

}  // namespace ringmaster::launcher
