// A formula for the time of a collective, fitted to the measurements of one run, and what it
// predicts for other numbers of ranks. Pure.
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

// seconds = fixed + bytes * per_byte, both at least 0, fitted by least squares of relative errors:
// a small message counts as much as a large one. Needs at least one point; if all have one size,
// all of the time is `fixed`.
struct Line {
  double fixed = 0;
  double per_byte = 0;
};
Line FitLine(const std::vector<Point>& points);

// `fixed` is that of FitLine(); `per_byte` is such that the line meets the largest size. Smaller
// messages fit into caches and are faster per byte, but a model's gradients don't fit.
Line FitLargest(const std::vector<Point>& points);

struct CostModel {
  double latency = 0;           // seconds per hop
  double per_byte = 0;          // seconds per byte sent
  double per_reduced_byte = 0;  // seconds per byte added up

  double Ring(int ranks, double bytes) const;
  // Each rank sends `bytes` to servers that hold equal shares, and gets the sum back. The time is
  // limited by the servers' links.
  double ParameterServers(int ranks, int servers, double bytes) const;
};

// `ranks`: at least 2. `per_reduced_byte`: as one rank measures it by itself; no more of it is used
// than the time of the allreduce leaves room for.
CostModel FitModel(int ranks, const Line& allreduce, double per_reduced_byte);

// The share of the time in which a worker computes that computes for `step_seconds` and then
// communicates.
inline double Efficiency(double step_seconds, double communication_seconds) {
  return step_seconds / (step_seconds + communication_seconds);
}

}  // namespace ringmaster::bench
