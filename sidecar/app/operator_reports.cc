#include "sidecar/app/operator_reports.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/membership/message_json.h"

namespace ringmaster::app {
namespace {

using std::chrono::milliseconds;

// Nearly every view is followed by the next in less, and nobody need know.
constexpr std::chrono::seconds kUnableLasts{1};
// Most steps end in less.
constexpr std::chrono::seconds kAwaitedLasts{2};

}  // namespace

void OperatorReports::Readiness(const membership::Candidate& candidate,
                                const std::vector<uint32_t>& missing) {
  if (readiness_ == candidate) return;
  readiness_ = candidate;
  outputs_.report_readiness(missing.empty(), missing, membership::EncodeCandidate(candidate));
}

void OperatorReports::Health(bool able, SteadyTime now) {
  if (able) {
    unable_since_.reset();
  } else if (!unable_since_) {
    unable_since_ = now;
  }
  if (able_ == able || (!able && now - *unable_since_ < kUnableLasts)) return;
  able_ = able;
  const auto unable =
      able ? milliseconds(0) : std::chrono::duration_cast<milliseconds>(now - *unable_since_);
  outputs_.report_health(able, unable);
}

void OperatorReports::Stalls(const std::vector<job::Stall>& stalls) {
  std::vector<job::Stall> timeless = stalls;
  for (job::Stall& stall : timeless) stall.waited_ms = 0;
  if (timeless == stalls_) return;
  stalls_ = std::move(timeless);
  outputs_.report_stalls(stalls);
}

void OperatorReports::FailingGpus(const std::vector<job::GpuHealth>& gpus) {
  if (gpus == failing_gpus_) return;
  failing_gpus_ = gpus;
  outputs_.report_failing_gpus(gpus);
}

void OperatorReports::StepAwaited(bool awaited, bool connected, SteadyTime now) {
  if (!awaited) {
    awaited_since_.reset();
    if (connected && std::exchange(awaited_reported_, false))
      outputs_.report_step_awaited(milliseconds(0));
    return;
  }
  if (!awaited_since_) {
    awaited_since_ = now;
    awaited_reported_ = false;  // that was another one
  }
  if (!connected || awaited_reported_ || now - *awaited_since_ < kAwaitedLasts) return;
  awaited_reported_ = true;
  outputs_.report_step_awaited(std::chrono::duration_cast<milliseconds>(now - *awaited_since_));
}

void OperatorReports::AllLeave(bool told, bool connected) {
  if (!told || !connected || std::exchange(all_leave_reported_, true)) return;
  outputs_.report_all_leave();
}

void OperatorReports::View(const membership::ViewPtr& view, const job::Rebuild* rebuild,
                           uint64_t step) const {
  outputs_.report_view(view, rebuild != nullptr ? job::ToJson(*rebuild).dump() : "", step);
}

}  // namespace ringmaster::app
