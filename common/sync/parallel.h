// Some calls that block, made side by side.
#pragma once

#include <cstddef>
#include <thread>
#include <vector>

namespace ringmaster::sync {

// call(0) to call(n - 1), each but the first on a thread of its own; returns when all have
// returned.
template <class F>
void InParallel(std::size_t n, const F& call) {
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < n; ++i) threads.emplace_back([&call, i] { call(i); });
  if (n > 0) call(0);
}

}  // namespace ringmaster::sync
