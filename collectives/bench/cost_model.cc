#include "collectives/bench/cost_model.h"

#include <algorithm>

namespace ringmaster::bench {

Line FitLine(const std::vector<Point>& points) {
  // Weighted by 1 / seconds^2.
  double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
  for (const Point& point : points) {
    const double weight = 1 / (point.seconds * point.seconds);
    w += weight;
    wx += weight * point.bytes;
    wy += weight * point.seconds;
    wxx += weight * point.bytes * point.bytes;
    wxy += weight * point.bytes * point.seconds;
  }
  const double determinant = w * wxx - wx * wx;
  if (determinant <= 1e-12 * w * wxx) return {wy / w, 0};  // all points have the same size
  const double per_byte = (w * wxy - wx * wy) / determinant;
  if (per_byte <= 0) return {wy / w, 0};
  const double fixed = (wy - per_byte * wx) / w;
  if (fixed < 0) return {0, wxy / wxx};
  return {fixed, per_byte};
}

Line FitLargest(const std::vector<Point>& points) {
  const auto largest =
      *std::max_element(points.begin(), points.end(),
                        [](const Point& a, const Point& b) { return a.bytes < b.bytes; });
  Line line = FitLine(points);
  if (largest.bytes > 0)
    line.per_byte = std::max(largest.seconds - line.fixed, 0.0) / largest.bytes;
  return line;
}

CostModel FitModel(int ranks, const Line& allreduce, double per_reduced_byte) {
  const double share = static_cast<double>(ranks - 1) / ranks;
  const double both_ways_and_reduced = allreduce.per_byte / share;
  CostModel model;
  model.latency = allreduce.fixed / (2 * (ranks - 1));
  model.per_reduced_byte = std::min(per_reduced_byte, both_ways_and_reduced);
  model.per_byte = (both_ways_and_reduced - model.per_reduced_byte) / 2;
  return model;
}

double CostModel::Ring(int ranks, double bytes) const {
  const double share = static_cast<double>(ranks - 1) / ranks;
  return 2 * (ranks - 1) * latency + share * bytes * (2 * per_byte + per_reduced_byte);
}

double CostModel::ParameterServers(int ranks, int servers, double bytes) const {
  const double at_a_server = bytes * ranks / servers;
  return 2 * latency + at_a_server * (2 * per_byte + per_reduced_byte);
}

}  // namespace ringmaster::bench
