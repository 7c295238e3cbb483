// What a registered sidecar reports of itself and its pod; proto/operator.proto says what each
// report means.
//
// Plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "common/job/gpu_health.h"
#include "common/job/rebuild.h"
#include "common/job/stall.h"
#include "common/job/worker_exit.h"
#include "common/membership/quorum_loss.h"
#include "common/membership/view.h"

namespace ringmaster::controllers {

struct ReadinessReport {
  bool ready = false;
  std::vector<std::uint32_t> missing_slots;
  membership::Candidate candidate;
};
struct ViewReport {
  static ViewReport Whole(membership::ViewPtr view, std::optional<job::Rebuild> rebuild) {
    const membership::Epoch epoch = membership::EpochOf(view);
    return {epoch, std::move(view), std::move(rebuild)};
  }
  // Of the view that the sidecar has installed; 0: only the rebuild is reported.
  membership::Epoch epoch = 0;
  membership::ViewPtr view;  // null: another sidecar reports it
  std::optional<job::Rebuild> rebuild;
};
// Exits that the sidecar has told an earlier stream of.
struct EarlierExits {
  std::vector<job::WorkerExit> exits;  // the oldest first
};
struct FinishedReport {
  std::uint64_t epoch = 0;
};
struct HealthReport {
  bool able = false;
  std::chrono::milliseconds unable{0};  // for so long
};
struct StallsReport {
  std::vector<job::Stall> stalls;
};
struct FailingGpusReport {
  std::vector<job::GpuHealth> gpus;
};
// A planned change has waited this long for the end of a step in that pod; 0: none waits any more.
struct StepAwaitedReport {
  std::chrono::milliseconds awaited{0};
};
// The pod was told that every pod of its view leaves.
struct AllLeaveReport {};
using SidecarReport = std::variant<ReadinessReport, ViewReport, job::WorkerExit, EarlierExits,
                                   FinishedReport, HealthReport, StallsReport, FailingGpusReport,
                                   StepAwaitedReport, AllLeaveReport, membership::RecoveryReport>;

}  // namespace ringmaster::controllers
