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

  static constexpr std::chrono::minutes kSayAgain{1};

  // To be said: so many have failed, the first of them so long ago.
  struct Word {
    std::uint64_t tries = 0;
    std::chrono::milliseconds lasted{0};
    friend bool operator==(const Word&, const Word&) = default;
  };

  // The first is said, then one every kSayAgain.
  std::optional<Word> Failed(Clock::time_point now) {
    if (tries_++ == 0) first_ = now;
    if (tries_ > 1 && now - said_ < kSayAgain) return std::nullopt;
    said_ = now;
    return WordAt(now);
  }

  // One has succeeded. Nothing where none had failed.
  std::optional<Word> Succeeded(Clock::time_point now) {
    if (tries_ == 0) return std::nullopt;
    const Word word = WordAt(now);
    tries_ = 0;
    return word;
  }

 private:
  Word WordAt(Clock::time_point now) const {
    return {tries_, std::chrono::duration_cast<std::chrono::milliseconds>(now - first_)};
  }

  std::uint64_t tries_ = 0;
  Clock::time_point first_, said_;
};

}  // namespace ringmaster::rendezvous
