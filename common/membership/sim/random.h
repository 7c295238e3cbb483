// Chance in a simulated schedule: all of it follows from the seed.
#pragma once

#include <cstdint>

namespace ringmaster::membership::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 0x1234567ull) {}
  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  std::int64_t Below(std::int64_t n) { return static_cast<std::int64_t>(Next() % n); }
  std::int64_t Between(std::int64_t low, std::int64_t high) { return low + Below(high - low + 1); }
  bool Chance(int per_thousand) { return Below(1000) < per_thousand; }

 private:
  std::uint64_t state_;
};

}  // namespace ringmaster::membership::sim
