// What of a partner that can't be reached is worth a line in the log: a moment without it is
// ordinary (it starts, it moves), a long one is a person's affair.
//
// Plain data; time is handed in.
#pragma once

#include <chrono>
#include <optional>

namespace ringmaster::rendezvous {

class Outage {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::seconds kPatience{15};
  static constexpr std::chrono::minutes kSayAgain{10};

  enum class Word { kNothing, kMention, kWarn };

  // One more attempt has failed. The first of an outage is mentioned; a warning comes when it has
  // lasted for kPatience, and again every kSayAgain.
  Word Failed(Clock::time_point now) {
    if (!since_) {
      since_ = now;
      return Word::kMention;
    }
    const bool due = warned_ ? now - *warned_ >= kSayAgain : now - *since_ >= kPatience;
    if (!due) return Word::kNothing;
    warned_ = now;
    return Word::kWarn;
  }

  // It is reached. How long it was not, where that was warned of.
  std::optional<std::chrono::seconds> Ended(Clock::time_point now) {
    std::optional<std::chrono::seconds> lasted;
    if (warned_) lasted = Lasted(now);
    since_.reset();
    warned_.reset();
    return lasted;
  }

  std::chrono::seconds Lasted(Clock::time_point now) const {
    return std::chrono::duration_cast<std::chrono::seconds>(now - since_.value_or(now));
  }

 private:
  std::optional<Clock::time_point> since_, warned_;
};

}  // namespace ringmaster::rendezvous
