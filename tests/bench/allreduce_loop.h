// The one measuring loop that ours, Open MPI's and Gloo's allreduce are timed with, so that they
// are comparable.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace ringmaster::bench {

struct LoopResult {
  size_t bytes;
  double median_us;  // over rounds, of the mean time of one in-place float32 sum
  double min_us;
};

// `barrier` and `allreduce(count)` are called by every rank alike. `until_all`: time until the last
// rank is done (what is timed is no collective, so ranks would drift apart). Bounded: each size
// runs for about `budget` seconds.
inline std::vector<LoopResult> TimeAllreduce(const std::vector<size_t>& sizes, double budget,
                                             const std::function<void()>& barrier,
                                             const std::function<void(size_t count)>& allreduce,
                                             bool until_all = false) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRounds = 7;
  std::vector<LoopResult> results;
  for (size_t bytes : sizes) {
    const size_t count = bytes / sizeof(float);
    // The same number of repetitions on every rank, from the size alone: enough to be timed, few
    // enough to end.
    const int repeats = static_cast<int>(
        std::clamp(budget * 2e8 / kRounds / (static_cast<double>(bytes) + 40000.0), 2.0, 2000.0));
    allreduce(count);
    allreduce(count);
    std::vector<double> rounds;
    for (int round = 0; round < kRounds; ++round) {
      barrier();
      const auto begin = Clock::now();
      for (int i = 0; i < repeats; ++i) allreduce(count);
      if (until_all) barrier();
      rounds.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() /
                       repeats);
    }
    std::sort(rounds.begin(), rounds.end());
    results.push_back({bytes, rounds[kRounds / 2], rounds[0]});
  }
  return results;
}

// argv[1]: sizes in bytes, comma-separated; argv[2]: seconds for each size.
inline std::vector<size_t> SizesFromArgument(const char* text) {
  std::vector<size_t> sizes;
  for (const char* at = text; *at != '\0';) {
    char* end = nullptr;
    sizes.push_back(std::strtoull(at, &end, 10));
    at = *end == ',' ? end + 1 : end;
    if (end == at && *end != '\0') break;
  }
  return sizes;
}

// One line for each size, read by allreduce.py.
inline void PrintResults(const char* what, int ranks, const std::vector<LoopResult>& results) {
  for (const LoopResult& r : results) {
    std::printf("%s %d %zu %.3f %.3f\n", what, ranks, r.bytes, r.median_us, r.min_us);
  }
  std::fflush(stdout);
}

}  // namespace ringmaster::bench
