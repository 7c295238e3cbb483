// Simulated time: what happens when, and chance. Plain data of one schedule.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

namespace ringmaster::app::sim {

using Micros = std::int64_t;
inline constexpr Micros kMs = 1000;
inline constexpr Micros kSecond = 1000 * kMs;

// The Unix time at which a simulation begins, in milliseconds.
inline constexpr std::int64_t kUnixMs = 1'700'000'000'000;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  // Not by a distribution of the library: each may draw another way.
  std::int64_t Below(std::int64_t n) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n));
  }
  std::int64_t Between(std::int64_t low, std::int64_t high) { return low + Below(high - low + 1); }
  bool Chance(int per_thousand) { return Below(1000) < per_thousand; }

 private:
  std::mt19937_64 engine_;
};

class Timeline {
 public:
  Micros now() const { return now_; }
  bool empty() const { return queue_.empty(); }

  void At(Micros at, std::function<void()> work) {
    queue_.push({std::max(at, now_), order_++, std::move(work)});
  }
  void After(Micros delay, std::function<void()> work) { At(now_ + delay, std::move(work)); }

  void RunNext() {
    // The queue's order doesn't look at the work, which may be moved out.
    std::function<void()> work = std::move(const_cast<Entry&>(queue_.top()).work);
    now_ = queue_.top().at;
    queue_.pop();
    work();
  }

 private:
  struct Entry {
    Micros at;
    std::uint64_t order;
    std::function<void()> work;
    bool operator<(const Entry& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  Micros now_ = 100 * kSecond;
  std::uint64_t order_ = 0;
  std::priority_queue<Entry> queue_;
};

}  // namespace ringmaster::app::sim
