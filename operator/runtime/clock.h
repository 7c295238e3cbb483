// Both clocks of a process, and how long it waits by chance: a simulator has its own.
//
// Plain data; the functions are safe from any thread.
#pragma once

#include <chrono>
#include <functional>

#include "operator/runtime/jitter.h"

namespace ringmaster::runtime {

struct Clock {
  std::function<std::chrono::system_clock::time_point()> wall = std::chrono::system_clock::now;
  std::function<std::chrono::steady_clock::time_point()> steady = std::chrono::steady_clock::now;
  // The wait and up to an n-th part more.
  std::function<std::chrono::milliseconds(std::chrono::milliseconds wait, int n)> jitter =
      WithJitter;
};

}  // namespace ringmaster::runtime
