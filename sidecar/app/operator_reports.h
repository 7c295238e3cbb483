// What this pod reports to the operator. Readiness and health are reported when they change.
//
// Thread rule: the sidecar's loop only; time is handed in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/job/worker_exit.h"
#include "common/membership/view.h"
#include "sidecar/app/agent_outputs.h"
#include "sidecar/health/rebuild_log.h"

namespace ringmaster::app {

class OperatorReports {
 public:
  explicit OperatorReports(OperatorOutputs outputs) : outputs_(std::move(outputs)) {}

  void Readiness(const membership::Candidate& candidate, const std::vector<uint32_t>& missing);
  bool readiness_reported() const { return readiness_.has_value(); }
  void ForgetReadiness() { readiness_.reset(); }

  // That the pod can't train is reported when it lasts.
  void Health(bool able, SteadyTime now);
  // Which ranks are waited for is reported when it changes, with how long by then.
  void Stalls(const std::vector<job::Stall>& stalls);
  // The GPUs that fail are reported when there are others.
  void FailingGpus(const std::vector<job::GpuHealth>& gpus);
  // Whether a planned change waits for the end of a step; reported when it lasts. An operator that
  // is not connected hears it later.
  void StepAwaited(bool awaited, bool connected, SteadyTime now);
  // Whether this pod was told that all pods of its view leave; reported once.
  void AllLeave(bool told, bool connected);
  // Another operator listens, which has heard none of it.
  void ForgetHealth() {
    able_.reset();
    stalls_.clear();
    failing_gpus_.clear();
    awaited_reported_ = false;
    all_leave_reported_ = false;
  }

  // `rebuild`: null where the view is the first.
  void View(const membership::ViewPtr& view, const job::Rebuild* rebuild, uint64_t step) const;
  void Exit(const job::WorkerExit& exit) const { outputs_.report_exit(exit); }
  void Finished(Epoch epoch) const { outputs_.report_finished(epoch); }
  void Recovery(const membership::RecoveryReport& report) const {
    outputs_.report_recovery(report);
  }

 private:
  const OperatorOutputs outputs_;
  std::optional<membership::Candidate> readiness_;  // as it was reported
  std::optional<bool> able_;                        // as it was reported
  std::optional<SteadyTime> unable_since_;
  std::vector<job::Stall> stalls_;            // as they were reported, but for how long
  std::vector<job::GpuHealth> failing_gpus_;  // as they were reported
  std::optional<SteadyTime> awaited_since_;
  bool awaited_reported_ = false;
  bool all_leave_reported_ = false;
};

}  // namespace ringmaster::app
