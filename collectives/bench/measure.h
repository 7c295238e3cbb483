// Times collectives through the library's C interface, as a training script uses it: one at a time,
// submitted and waited for, from ordinary memory.
//
// All ranks call these in the same order. Errors end the process, because the figures of a broken
// run mean nothing.
#pragma once

#include <cstddef>
#include <functional>

#include "common/bench/options.h"

namespace ringmaster::bench {

struct Timing {
  std::size_t bytes = 0;  // of the whole buffer: what a rank holds before a reducescatter or after
                          // an allgather
  int repeats = 0;
  double mean_seconds = 0;  // of the slowest rank
  double p99_seconds = 0;
};

// `bytes` is rounded up to a number that all ranks can share evenly in floats.
Timing Measure(Operation operation, std::size_t bytes, double seconds);

// The mean time of a step that computes (sleeps) for `step_seconds` and then allreduces `bytes`.
double MeasureStep(double step_seconds, std::size_t bytes);

// The seconds in which this rank alone adds `bytes` of floats to others.
double MeasureAdding(std::size_t bytes);

// Prints `what` and the library's error, and ends the process.
[[noreturn]] void Die(const char* what);

}  // namespace ringmaster::bench
