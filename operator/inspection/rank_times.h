// How each rank of a job spent the time between two observations. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operator/inspection/job_inspection.h"

namespace ringmaster::inspection {

struct RankTimes {
  int rank = -1;
  std::string pod;
  std::string worker;  // the pod, with /slot if it has several workers
  uint64_t step = 0;
  uint64_t steps = 0;        // completed between the observations
  job::WorkerTimes between;  // seconds is 0 if it has not trained since

  // The share of its time, 0 to 1.
  double Share(double seconds) const {
    return between.seconds > 0 ? std::clamp(seconds / between.seconds, 0.0, 1.0) : 0;
  }
  double Waits() const { return Share(between.waiting); }
};

// Ordered by rank. A worker that is new since `earlier` counts from its first view.
std::vector<RankTimes> TimesByRank(const Inspection& earlier, const Inspection& now);

// The mean duration of a step, by the most advanced rank, because the others may have been asked a
// moment earlier. nullopt if no step was completed.
std::optional<double> StepSeconds(const std::vector<RankTimes>& ranks);

// The rank that the others wait for: it waits clearly less than every other rank.
struct Straggler {
  RankTimes rank;
  double least_of_others = 0;  // the smallest share of waiting among the other ranks
};
std::optional<Straggler> FindStraggler(const std::vector<RankTimes>& ranks);

}  // namespace ringmaster::inspection
