// What a collective costs as a formula, fitted from measurements of one run, and what it predicts
// for other numbers of ranks. Pure.
//
// A ring of p ranks sums n bytes in 2 (p - 1) hops. Each hop costs `latency` seconds; in all each
// rank sends 2 (p - 1) / p n bytes, at `per_byte` seconds each, and adds up (p - 1) / p n bytes, at
// `per_reduced_byte` seconds each (the model of Thakur, Rabenseifner and Gropp, "Optimization of
// Collective Communication Operations in MPICH", 2005, section 3).
#pragma once

#include <vector>

namespace ringmaster::bench {

struct Point {
  double bytes = 0;
  double seconds = 0;
};

// seconds = fixed + bytes * per_byte, both at least 0, by least squares of relative errors: a small
// message counts as much as a large one. At least one point; of one size alone all is `fixed`.
struct Line {
  double fixed = 0;
  double per_byte = 0;
};
Line FitLine(const std::vector<Point>& points);

// The fixed part as above; the part of each byte such that the largest size is met: what fits into
// caches is faster, and a model's gradients don't.
Line FitLargest(const std::vector<Point>& points);

struct CostModel {
  double latency = 0;           // seconds a hop
  double per_byte = 0;          // seconds a byte sent
  double per_reduced_byte = 0;  // seconds a byte added up

  double Ring(int ranks, double bytes) const;
  // The ranks send `bytes` each to servers that hold equal shares, and get the sum back. The
  // servers' links are what limits it.
  double ParameterServers(int ranks, int servers, double bytes) const;
};

// `ranks`: at least 2. `per_reduced_byte`: as one rank measures it by itself; it counts only as far
// as the allreduce has room for it.
CostModel FitModel(int ranks, const Line& allreduce, double per_reduced_byte);

// Of one that computes `step_seconds` and then communicates: the share of the time in which it
// computes.
inline double Efficiency(double step_seconds, double communication_seconds) {
  return step_seconds / (step_seconds + communication_seconds);
}

}  // namespace ringmaster::bench
