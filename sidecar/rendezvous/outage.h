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
  static constexpr std::chrono::minutes kLogAgain{10};

  enum class Severity { kNothing, kInfo, kWarning };

  // One more attempt has failed. The first of an outage is worth an information; a warning comes
  // when it has lasted for kPatience, and again every kLogAgain.
  Severity Failed(Clock::time_point now) {
    if (!since_) {
      since_ = now;
      return Severity::kInfo;
    }
    const bool due = warned_ ? now - *warned_ >= kLogAgain : now - *since_ >= kPatience;
    if (!due) return Severity::kNothing;
    warned_ = now;
    return Severity::kWarning;
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
