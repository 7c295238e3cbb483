// The progress of one job, merged from its sidecars' answers: each sidecar knows its own part, may
// answer late or not at all, and disappears with its pod. The views and the steps are parts of
// their own (view_history.h, step_count.h). Pure: no socket, no clock.
//
// Thread rule: none; one thread owns it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operator/cli/step_count.h"
#include "operator/cli/time_point.h"
#include "operator/cli/view_history.h"
#include "operator/inspection/sidecar_status.h"

namespace ringmaster::cli {

class JobProgress {
 public:
  void Observe(const inspection::SidecarStatus& status, TimePoint now);
  // A pod that is no more: its state says nothing about the job.
  void Forget(const std::string& pod);
  // Records the newest exit of a process of this pod; 128+n: killed by signal n.
  void NoteExit(const std::string& pod, int code);
  std::string HowEnded(const std::string& pod) const;

  const ViewHistory& views() const { return views_; }
  // See ViewHistory.
  std::vector<ViewRecord> TakeSettled(TimePoint now, bool last = false) {
    return views_.TakeSettled(now, last);
  }

  std::uint64_t step() const { return steps_.step(); }
  double samples_per_second() const { return samples_per_second_; }
  const std::map<std::string, double>& values() const { return values_; }
  // What the coordinator reports about the job ("Training", "Rebuilding", "Held", ...); empty if
  // nothing was reported.
  std::string state() const;

 private:
  std::map<std::string, inspection::SidecarStatus> sidecars_;  // newest answer by pod
  ViewHistory views_;
  StepCount steps_;
  std::map<std::string, std::string> ends_;  // how a process ended last, by pod
  std::map<std::string, double> values_;
  double samples_per_second_ = 0;
};

}  // namespace ringmaster::cli
