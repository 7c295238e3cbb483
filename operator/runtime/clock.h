// The clocks of a process and its random waits: a simulator has its own.
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
  // Returns the wait plus a random part of up to 1/n of it.
  std::function<std::chrono::milliseconds(std::chrono::milliseconds wait, int n)> jitter =
      WithJitter;
};

}  // namespace ringmaster::runtime
