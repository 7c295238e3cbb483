// A token bucket over the calls of one client.
//
// Thread rule: safe from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

#include "common/sync/mutex.h"

namespace ringmaster::kube {

class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  // qps <= 0: no limit.
  RateLimiter(double qps, int burst) : qps_(qps), burst_(burst), tokens_(burst) {}

  // Takes a token and returns how long the caller has to wait before using it. Returns nullopt if
  // that would be after `deadline`; then no token is taken, so that refused calls don't delay
  // others.
  std::optional<Clock::duration> Reserve(Clock::time_point now, Clock::time_point deadline) {
    if (qps_ <= 0 || lifted_) return Clock::duration{};
    const sync::MutexLock lock(&mu_);
    tokens_ = std::min(burst_, tokens_ + Seconds(now - last_).count() * qps_);
    last_ = now;
    const auto wait =
        std::chrono::duration_cast<Clock::duration>(Seconds(std::max(0.0, 1 - tokens_) / qps_));
    if (wait.count() > 0 && now + wait >= deadline) return std::nullopt;
    tokens_ -= 1;
    return wait;
  }

  // Removes the limit for good.
  void Lift() { lifted_ = true; }

 private:
  using Seconds = std::chrono::duration<double>;

  const double qps_, burst_;
  std::atomic<bool> lifted_ = false;
  sync::Mutex mu_;
  double tokens_ GUARDED_BY(mu_);
  Clock::time_point last_ GUARDED_BY(mu_){};
};

}  // namespace ringmaster::kube
