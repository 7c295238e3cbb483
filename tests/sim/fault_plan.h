// How many faults are still to come, a fault that waits for the ranks of a view to be in the middle
// of something, and when faults ended.
//
// Owner: World. Plain data of one schedule; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "tests/sim/timeline.h"

namespace ringmaster::app::sim {

class FaultPlan {
 public:
  using Strike = std::function<void(int pod)>;

  void Draw(Random* random) { left_ = static_cast<int>(random->Between(1, 12)); }
  // False: there are no more.
  bool TakeNext() { return left_-- > 0; }

  // Keeps a fault until somebody takes it; one that waits already is dropped. Returns its number.
  std::uint64_t Wait(Strike strike) {
    strike_ = std::move(strike);
    return ++number_;
  }
  bool waits() const { return strike_ != nullptr; }
  // Null: none waits.
  Strike Take() { return std::exchange(strike_, nullptr); }
  // The same for the fault of this number alone.
  Strike Take(std::uint64_t number) { return number == number_ ? Take() : nullptr; }

  // From now on nothing fails any more.
  void Heal(Micros now) {
    healed_at_ = now;
    strike_ = nullptr;
  }
  std::optional<Micros> healed_at() const { return healed_at_; }

 private:
  int left_ = 0;
  Strike strike_;
  std::uint64_t number_ = 0;
  std::optional<Micros> healed_at_;
};

}  // namespace ringmaster::app::sim
