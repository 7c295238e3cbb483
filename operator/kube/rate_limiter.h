// A token bucket over the calls of one client.
//
// Thread rule: safe from any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>

namespace ringmaster::kube {

class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  // qps <= 0: no limit.
  RateLimiter(double qps, int burst) : qps_(qps), burst_(burst), tokens_(burst) {}

  // Takes a token; how long the caller has to wait before it may use it.
  Clock::duration Reserve(Clock::time_point now) {
    if (qps_ <= 0) return {};
    std::lock_guard lock(mu_);
    std::chrono::duration<double> passed = now - last_;
    if (last_ != Clock::time_point{})
      tokens_ = std::min<double>(burst_, tokens_ + passed.count() * qps_);
    last_ = now;
    tokens_ -= 1;
    if (tokens_ >= 0) return {};
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(-tokens_ / qps_));
  }

 private:
  const double qps_;
  const int burst_;
  std::mutex mu_;
  double tokens_;  // guarded by mu_
  Clock::time_point last_{};
};

}  // namespace ringmaster::kube
