#include "sidecar/app/training_history.h"

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "sidecar/health/metrics.h"

namespace ringmaster::app {

const job::Rebuild* TrainingHistory::Installed(const membership::View* before,
                                               const membership::View& view, SteadyTime now,
                                               int64_t unix_ms) {
  const job::Rebuild* rebuild = tracker_.Installed(before, view, slots_, now, unix_ms);
  if (view.reason == membership::Reason::kBootstrap) {  // anew: steps are counted from the first
    progress_.RestartFrom(0);
    tracker_.ForgetSteps();
  }
  metrics_->SetEpoch(view.epoch);
  metrics_->SetWorldSize(static_cast<int>(view.ranks.size()));
  if (rebuild != nullptr) metrics_->CountRebuild(rebuild->reason);
  return rebuild;
}

const job::Rebuild* TrainingHistory::Rebuilt(const job::Rebuild& figures) {
  const job::Rebuild* known = rebuilds_.Find(figures.epoch);
  const bool first = known != nullptr && !known->complete;
  const job::Rebuild* rebuild = tracker_.Finished(figures);
  if (rebuild == nullptr || !first) return rebuild;
  for (const auto& [phase, duration] : rebuild->seconds)
    metrics_->ObserveRebuild(phase, rebuild->reason, duration);
  spdlog::info("rebuild complete epoch={} reason={} seconds={} steps_lost={}",
               membership::EpochText(figures.epoch), rebuild->reason,
               job::ToJson(rebuild->seconds).dump(), rebuild->steps_lost);
  if (rebuild->steps_lost > 0) progress_.RestartFrom(figures.steps_resumed);
  return rebuild;
}

void TrainingHistory::Remember(const std::vector<WorkerProcess>& workers,
                               const ViewPtr& installed) {
  progress_.Remember(workers);
  for (const WorkerProcess& worker : workers) {
    if (!worker.standby() && installed != nullptr && worker.installed == installed->epoch)
      tracker_.SawStep(worker.step);
  }
}

void TrainingHistory::Sample(const std::vector<WorkerProcess>& workers, const ViewPtr& installed,
                             SteadyTime now, int64_t unix_ms) {
  for (const WorkerProcess& worker : workers) {
    for (const auto& [name, value] : worker.values) metrics_->SetValue(name, value);
    if (!worker.standby()) metrics_->SetTimes(worker.slot, worker.times);
  }
  metrics_->SetStep(progress_.Step(workers));
  progress_.Sample(workers, now);
  if (!record_.IsDue(now)) return;
  record_.Add(now, unix_ms, installed == nullptr ? 0 : installed->ranks.size(),
              progress_.Step(workers), progress_.Values(workers));
}

}  // namespace ringmaster::app
