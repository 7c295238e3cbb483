// When the next standby starts: a worker process that waits in rm_init to take the place of one
// that dies.
//
// Plain data; time is handed in.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "sidecar/launcher/restart_backoff.h"
#include "sidecar/launcher/slots.h"

namespace ringmaster::launcher {

class StandbySchedule {
 public:
  uint64_t NextIncarnation() { return ++incarnation_; }
  // Never at once: a script that can't be a standby must not eat the machine.
  void Died(std::chrono::steady_clock::duration lived, TimePoint now) {
    start_at_ = now + std::max(kDelay, backoff_.AfterDeath(lived));
  }
  // The next standby's imports would compete with the recovery that has just begun.
  void Promoted(TimePoint now) { start_at_ = now + kDelay; }
  void Cancel() { start_at_.reset(); }
  bool TakeStart(TimePoint now) { return TakeDue(&start_at_, now); }
  std::optional<TimePoint> NextWake() const { return start_at_; }

 private:
  static constexpr std::chrono::milliseconds kDelay{1000};
  uint64_t incarnation_ = 0;
  RestartBackoff backoff_;
  std::optional<TimePoint> start_at_;
};

}  // namespace ringmaster::launcher
