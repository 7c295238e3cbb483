// Times the rebuilds of this pod: from the first word of a change, over the decision and the stop,
// to the first operation of the new view. The phases are those of docs/contracts.md section 5.
//
// Plain data on the loop; time is handed in.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "common/membership/view.h"
#include "sidecar/health/rebuild_log.h"

namespace ringmaster::app {

class RebuildTracker {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;

  explicit RebuildTracker(health::RebuildLog* log) : log_(log) {}

  // Something that may change the view happened: a death, a suspicion, a plan. The first since the
  // last view counts.
  void Noticed(SteadyTime now, int64_t unix_ms);
  // A worker of this pod ended at `when`, which is known only now.
  void Died(SteadyTime when, SteadyTime now);
  void StopAsked(SteadyTime now);
  void Stopped(SteadyTime now);
  // The rebuild that `view` is; null for the first view this pod ever had.
  job::Rebuild* Installed(const membership::View* before, const membership::View& view, int slots,
                          SteadyTime now, int64_t unix_ms);
  // A worker's own figures (epoch, seconds, steps_resumed); the slowest of the pod counts. Null if
  // the rebuild is not known.
  job::Rebuild* Finished(const job::Rebuild& figures);
  // A worker of the newest view, of this pod or another, has completed so many steps.
  void SawStep(uint64_t step) { newest_step_ = std::max(newest_step_, step); }
  void ForgetSteps() { newest_step_ = 0; }
  uint64_t newest_step() const { return newest_step_; }

 private:
  health::RebuildLog* const log_;
  std::optional<SteadyTime> noticed_, stop_asked_, stopped_;
  std::optional<SteadyTime> died_;  // the first since the last view
  int64_t noticed_unix_ms_ = 0;
  uint64_t newest_step_ = 0;  // completed by some worker of the newest view
};

}  // namespace ringmaster::app
