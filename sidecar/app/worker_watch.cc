#include "sidecar/app/worker_watch.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "common/fields/fields.h"

namespace ringmaster::app {
namespace {

// How long a worker may say nothing before the launcher is asked what it does: three pings.
constexpr int kPingsMissed = 3;
// A longer time between two ticks, which come four times a second, is this process's own
// standstill.
constexpr std::chrono::milliseconds kLongTick{1000};
// Half a second without a launcher is its death, and its workers', so for that less is long, too.
constexpr std::chrono::milliseconds kLongTickForLauncher{350};

}  // namespace

WorkerWatch::WorkerWatch(const WorkerTableOptions* options, WorkerProcesses* processes,
                         LauncherPeer* launcher)
    : options_(options), processes_(processes), launcher_(launcher) {}

std::vector<WorkerProcess> WorkerWatch::Tick(SteadyTime now, const PodView& view) {
  ForgiveOwnSleep(now);
  AskAboutSilent(now, view);
  const auto fence =
      options_->without.Has(GlueClause::kFenceWaited) ? -options_->fence : options_->fence;
  return processes_->TakeDead(now, fence, launcher_->lost_at());
}

// The others wait for it in the ring, and can't tell it from one that computes for long. A debugger
// has its reasons; only the fence ends its patience.
void WorkerWatch::OnState(const json& frame, SteadyTime now) {
  if (fields::Text(frame, "state") != "T") return;
  const WorkerProcess* worker =
      processes_->Find(false, static_cast<int>(fields::Integer(frame, "slot", -1)),
                       fields::Unsigned(frame, "incarnation"));
  if (worker == nullptr || now - worker->heard < options_->stopped_for) return;
  const auto silent = std::chrono::duration_cast<std::chrono::milliseconds>(now - worker->heard);
  launcher_->Kill(*worker, "stopped by a signal, silent for " + std::to_string(silent.count()) +
                               " ms (elasticPolicy.stoppedWorkerSeconds)");
}

// What was said meanwhile has yet to be read.
void WorkerWatch::ForgiveOwnSleep(SteadyTime now) {
  const auto slept = now - ticked_.value_or(now);
  ticked_ = now;
  if (slept >= kLongTickForLauncher) launcher_->ForgiveSleep(slept);
  if (slept < kLongTick) return;
  for (WorkerProcess& worker : processes_->all()) {
    worker.heard += slept;
    worker.looked += slept;
    if (worker.closed_at) *worker.closed_at += slept;
  }
}

void WorkerWatch::AskAboutSilent(SteadyTime now, const PodView& view) {
  for (WorkerProcess& worker : processes_->all()) {
    // One that is in no view may connect when it likes.
    if ((worker.connection == 0 && !view.Lists(worker)) || worker.standby()) continue;
    if (now - worker.heard < kPingsMissed * options_->ping) continue;
    if (now - worker.looked < options_->ping) continue;
    worker.looked = now;
    launcher_->Look(worker);
  }
}

}  // namespace ringmaster::app
