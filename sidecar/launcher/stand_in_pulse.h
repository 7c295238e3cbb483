// When a stand-in pings its sidecar, and when it has heard nothing from it for too long.
//
// Plain data; time is handed in.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "sidecar/launcher/clock.h"

namespace ringmaster::launcher {

class StandInPulse {
 public:
  // The sidecar says how often, and after how long without a word it counts as gone.
  void Welcomed(int64_t ping_ms, int64_t fence_ms) {
    ping_every_ = std::chrono::milliseconds(std::max<int64_t>(ping_ms, 10));
    fence_ = std::chrono::milliseconds(std::max<int64_t>(fence_ms, 100));
  }
  void Heard(TimePoint now) { heard_ = now; }
  // Before the next frame of the sidecar it is not missed.
  void Forget() { heard_.reset(); }

  // The number of the ping that is due.
  std::optional<uint64_t> TakePing(TimePoint now) {
    if (now < ping_at_) return std::nullopt;
    ping_at_ = now + ping_every_;
    return ++pings_;
  }
  // True once for each fence that passes without a word.
  bool TakeFence(TimePoint now) {
    if (!heard_ || now - *heard_ < fence_) return false;
    heard_ = now;
    return true;
  }
  TimePoint NextWake() const { return heard_ ? std::min(ping_at_, *heard_ + fence_) : ping_at_; }

 private:
  uint64_t pings_ = 0;
  TimePoint ping_at_{};
  std::optional<TimePoint> heard_;
  std::chrono::milliseconds ping_every_{250}, fence_{10000};
};

}  // namespace ringmaster::launcher
