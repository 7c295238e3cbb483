// Times collectives through the library's C interface, as a training script uses it: one at a time,
// submitted and waited for, from ordinary memory.
//
// All ranks call these in the same order. Errors end the process: a figure of a broken run is none.
#pragma once

#include <cstddef>
#include <functional>

#include "collectives/bench/options.h"

namespace ringmaster::bench {

struct Timing {
  std::size_t bytes = 0;  // of the whole buffer: what a rank holds before a reducescatter or after
                          // an allgather
  int repeats = 0;
  double mean_seconds = 0;  // of the slowest rank
  double p99_seconds = 0;
};

// `bytes` becomes what all ranks can share evenly in floats.
Timing Measure(Operation operation, std::size_t bytes, double seconds);

// A step that computes (sleeps) for so long and then sums `bytes`: its mean time.
double MeasureStep(double step_seconds, std::size_t bytes);

// Seconds in which this rank alone adds so many bytes of floats to others.
double MeasureAdding(std::size_t bytes);

// Prints `what` and the library's error, and ends the process.
[[noreturn]] void Die(const char* what);

}  // namespace ringmaster::bench
