#include "sidecar/app/training_history.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/fields.h"
#include "common/logging/log.h"
#include "sidecar/health/metrics.h"

namespace ringmaster::app {
namespace {

// A page is at most some 100 KB, of rows of the longest numbers, and mostly 20.
constexpr std::size_t kSamplesInPage = 256;
constexpr std::size_t kRebuildBytesInPage = 24 << 10;
constexpr std::size_t kMostNames = 100;  // of a change's workers: there may be thousands

nlohmann::json InShort(job::Rebuild rebuild) {
  for (auto* names : {&rebuild.members, &rebuild.left, &rebuild.joined})
    names->resize(std::min(names->size(), kMostNames));
  return job::ToJson(rebuild);
}

}  // namespace

const job::Rebuild* TrainingHistory::Installed(const membership::View* before,
                                               const membership::View& view, SteadyTime now,
                                               int64_t unix_ms) {
  const job::Rebuild* rebuild = tracker_.Installed(before, view, slots_, now, unix_ms);
  // Anew: steps are counted from the first. (A planned view in which nobody comes or goes has the
  // reason of the one before it.)
  if (view.reason == membership::Reason::kBootstrap && !view.planned) {
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
  logging::Info("rebuild complete epoch={} reason={} seconds={} steps_lost={}",
                membership::EpochText(figures.epoch), rebuild->reason,
                job::ToJson(rebuild->seconds).dump(), rebuild->steps_lost);
  if (rebuild->steps_lost > 0) progress_.RestartFrom(figures.steps_resumed);
  return rebuild;
}

nlohmann::json TrainingHistory::Before(int64_t unix_ms, Epoch epoch) const {
  nlohmann::json page = record_.Before(unix_ms, kSamplesInPage);
  std::vector<nlohmann::json> newest_first;
  std::size_t bytes = 0;
  const auto& all = rebuilds_.all();
  for (auto rebuild = all.rbegin(); rebuild != all.rend() && bytes < kRebuildBytesInPage;
       ++rebuild) {
    if (rebuild->epoch >= epoch) continue;
    newest_first.push_back(InShort(*rebuild));
    bytes += newest_first.back().dump().size();
  }
  std::reverse(newest_first.begin(), newest_first.end());
  page["rebuilds"] = std::move(newest_first);
  return page;
}

bool TrainingHistory::Take(const nlohmann::json& page, int64_t* unix_ms, Epoch* epoch) {
  std::vector<job::Rebuild> before;
  for (const nlohmann::json& json : fields::List(page, "rebuilds")) {
    const auto rebuild = job::RebuildFromJson(json);
    if (rebuild && rebuild->epoch < *epoch) before.push_back(*rebuild);
  }
  const std::size_t rebuilds = rebuilds_.Prepend(before);
  const std::size_t samples = record_.Prepend(page, *unix_ms);
  if (samples > 0) *unix_ms = record_.since_unix_ms();
  if (rebuilds > 0) *epoch = rebuilds_.all().front().epoch;
  return samples + rebuilds > 0;
}

void TrainingHistory::Remember(const std::vector<WorkerProcess>& workers,
                               const ViewPtr& installed) {
  progress_.Remember(workers);
  for (const WorkerProcess& worker : workers) {
    if (!worker.standby() && installed != nullptr && worker.views.installed() == installed->epoch)
      tracker_.SawStep(worker.figures.step());
  }
}

void TrainingHistory::Sample(const std::vector<WorkerProcess>& workers, const ViewPtr& installed,
                             SteadyTime now, int64_t unix_ms) {
  for (const WorkerProcess& worker : workers) {
    for (const auto& [name, value] : worker.figures.values()) metrics_->SetValue(name, value);
    if (!worker.standby()) metrics_->SetTimes(worker.slot(), worker.figures.times());
  }
  metrics_->SetStep(progress_.Step(workers));
  progress_.Sample(workers, now);
  if (paused_ || !record_.IsDue(now)) return;
  // The worker of a pod that has just joined has said no step yet, and the others have.
  const uint64_t step = std::max(progress_.Step(workers), tracker_.newest_step());
  record_.Add(now, unix_ms, installed == nullptr ? 0 : installed->ranks.size(), step,
              progress_.Values(workers));
}

}  // namespace ringmaster::app
