#include "common/wall_time/wall_time.h"

#include <algorithm>

namespace ringmaster::wall_time {

std::chrono::system_clock::time_point FromUnixSeconds(std::time_t seconds) {
  using Clock = std::chrono::system_clock;
  constexpr std::time_t kFarthest =
      std::chrono::duration_cast<std::chrono::seconds>(Clock::duration::max()).count() / 2;
  return Clock::from_time_t(std::clamp(seconds, -kFarthest, kFarthest));
}

}  // namespace ringmaster::wall_time
