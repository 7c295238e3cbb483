// A timer for something that is sent again until it is answered, ever more slowly. A plain value.
#pragma once

#include <algorithm>
#include <optional>

#include "common/membership/config.h"

namespace ringmaster::membership {

struct Repeat {
  std::optional<TimePoint> at;
  int times = 0;

  void Stop() { *this = {}; }
  bool Due(TimePoint now) const { return at && *at <= now; }
  // The pause doubles three times, then stays.
  void Again(TimePoint now, Duration first) {
    at = now + first * (1 << std::min(times, 3));
    ++times;
  }
};

}  // namespace ringmaster::membership
