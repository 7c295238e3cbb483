// How long to wait before a process that has died starts again: not at all after the first death
// soon after its start, then longer and longer.
//
// Plain data; time is handed in.
#pragma once

#include <algorithm>
#include <chrono>

namespace ringmaster::launcher {

class RestartBackoff {
 public:
  // It has died after so long.
  std::chrono::milliseconds AfterDeath(std::chrono::steady_clock::duration lived) {
    quick_deaths_ = lived < kQuick ? quick_deaths_ + 1 : 1;
    if (quick_deaths_ <= 1) return std::chrono::milliseconds(0);
    return std::min<std::chrono::milliseconds>(
        std::chrono::milliseconds(500) * (1 << std::min(quick_deaths_ - 2, 10)), kLongest);
  }

 private:
  static constexpr std::chrono::seconds kQuick{5}, kLongest{30};
  int quick_deaths_ = 0;  // in a row
};

}  // namespace ringmaster::launcher
