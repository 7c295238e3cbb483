// Where the time of each rank of a job went between two looks. Pure.
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
  std::string worker;  // the pod, with /slot where it has several workers
  uint64_t step = 0;
  uint64_t steps = 0;        // completed between the looks
  job::WorkerTimes between;  // seconds 0: it has not trained since

  // Of its time, 0 to 1.
  double Share(double seconds) const {
    return between.seconds > 0 ? std::clamp(seconds / between.seconds, 0.0, 1.0) : 0;
  }
  double Waits() const { return Share(between.waiting); }
};

// By rank. A worker that is new since `earlier` counts from its first view.
std::vector<RankTimes> TimesByRank(const Inspection& earlier, const Inspection& now);

// The mean time of a step, by the rank that has come furthest: the others may have been asked a
// moment earlier. Empty: no step was completed.
std::optional<double> StepSeconds(const std::vector<RankTimes>& ranks);

// The rank that the others wait for: it waits clearly less than every other one does.
struct Straggler {
  RankTimes rank;
  double least_of_others = 0;  // share of its time that the other waits that waits least
};
std::optional<Straggler> FindStraggler(const std::vector<RankTimes>& ranks);

}  // namespace ringmaster::inspection
