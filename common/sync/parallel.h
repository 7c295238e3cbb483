// Makes several blocking calls at the same time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace ringmaster::sync {

// Calls call(0) to call(n - 1), each but the first on a thread of its own. Returns when all have
// returned.
template <class F>
void InParallel(std::size_t n, const F& call) {
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < n; ++i) threads.emplace_back([&call, i] { call(i); });
  if (n > 0) call(0);
}

// Calls call(0) to call(n - 1), `at_once` at the same time, and each even if others have failed;
// but no more once ends(), which is asked between two batches, is true. Returns false if a call has
// failed.
template <class F, class Ends>
bool InBatches(std::size_t n, std::size_t at_once, const F& call, const Ends& ends) {
  std::atomic<bool> ok = true;
  for (std::size_t done = 0; done < n && (done == 0 || !ends()); done += at_once) {
    InParallel(std::min(at_once, n - done), [&](std::size_t i) {
      if (!call(done + i)) ok = false;
    });
  }
  return ok;
}
template <class F>
bool InBatches(std::size_t n, std::size_t at_once, const F& call) {
  return InBatches(n, at_once, call, [] { return false; });
}

}  // namespace ringmaster::sync
