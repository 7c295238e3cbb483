// Random waits: many clients that wait for the same thing must not all come at one moment.
//
// Thread rule: a free function, safe from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>

namespace ringmaster::runtime {

// Returns `wait` plus a random part of up to 1/n of it.
inline std::chrono::milliseconds WithJitter(std::chrono::milliseconds wait, int n) {
  thread_local std::minstd_rand random(std::random_device{}());
  std::uniform_int_distribution<std::int64_t> extra(0, wait.count() / n + 1);
  return wait + std::chrono::milliseconds(extra(random));
}

}  // namespace ringmaster::runtime
