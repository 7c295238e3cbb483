// How far the workers of this pod have come: steps, the values that the script reports, samples/s.
//
// It remembers what workers that have ended had reported: /status goes on to show how far the pod
// got. Plain data of the sidecar's loop; time is handed in.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

class Progress {
 public:
  void Remember(const std::vector<WorkerProcess>& workers);
  // The job goes on from this step: later ones were lost.
  void RestartFrom(uint64_t step) { highest_step_ = step; }
  uint64_t Step(const std::vector<WorkerProcess>& workers) const;
  // The newest by name; those of living workers come first.
  std::map<std::string, double> Values(const std::vector<WorkerProcess>& workers) const;

  // Takes a sample of how many samples the living workers have worked off.
  void Sample(const std::vector<WorkerProcess>& workers, SteadyTime now);
  double SamplesPerSecond() const;

 private:
  uint64_t highest_step_ = 0;
  std::map<std::string, double> last_values_;
  std::deque<std::pair<SteadyTime, double>> samples_;
};

}  // namespace ringmaster::app
