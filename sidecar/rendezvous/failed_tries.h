// What of calls that fail one after the other is worth a line in the log: that it begins, now and
// then that it goes on, and that it is over.
//
// Plain data; time is handed in.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace ringmaster::rendezvous {

class FailedTries {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::minutes kLogAgain{1};

  // To be logged: so many have failed, the first of them so long ago.
  struct Streak {
    std::uint64_t tries = 0;
    std::chrono::milliseconds lasted{0};
    friend bool operator==(const Streak&, const Streak&) = default;
  };

  // The first is logged, then one every kLogAgain.
  std::optional<Streak> Failed(Clock::time_point now) {
    if (tries_++ == 0) first_ = now;
    if (tries_ > 1 && now - logged_ < kLogAgain) return std::nullopt;
    logged_ = now;
    return StreakAt(now);
  }

  // One has succeeded. Nothing where none had failed.
  std::optional<Streak> Succeeded(Clock::time_point now) {
    if (tries_ == 0) return std::nullopt;
    const Streak streak = StreakAt(now);
    tries_ = 0;
    return streak;
  }

 private:
  Streak StreakAt(Clock::time_point now) const {
    return {tries_, std::chrono::duration_cast<std::chrono::milliseconds>(now - first_)};
  }

  std::uint64_t tries_ = 0;
  Clock::time_point first_, logged_;
};

}  // namespace ringmaster::rendezvous
