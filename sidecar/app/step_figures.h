// What a worker reports of its training: the step, the values of the script, where its time goes,
// and which tensors it waits for.
//
// A worker may report anything: absent fields and wrong types count as empty. Plain data of the
// sidecar's loop.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/job/stall.h"
#include "common/job/worker_times.h"
#include "common/membership/view.h"

namespace ringmaster::app {

class StepFigures {
 public:
  // The step, the values, the stalls and the times of a `ping`. A value that it doesn't name stays.
  void TakePing(const nlohmann::json& frame);
  void AtStep(uint64_t step) { step_ = step; }

  uint64_t step() const { return step_; }
  const std::map<std::string, double>& values() const { return values_; }
  const job::WorkerTimes& times() const { return times_; }
  // That it has reported in this view; none if it was in another.
  const std::vector<job::Stall>& StallsIn(membership::Epoch epoch) const;

 private:
  uint64_t step_ = 0;
  std::map<std::string, double> values_;
  job::WorkerTimes times_;
  std::vector<job::Stall> stalls_;
  membership::Epoch stalls_epoch_ = 0;
};

}  // namespace ringmaster::app
