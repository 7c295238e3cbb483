#include "sidecar/app/worker_watch.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "common/fields/fields.h"

namespace ringmaster::app {

using nlohmann::json;

namespace {

// A longer time between two ticks, which come four times a second, is this process's own
// standstill.
constexpr std::chrono::milliseconds kLongTick{1000};
// Half a second without a launcher is its death, and its workers', so for that less is long, too.
constexpr std::chrono::milliseconds kLongTickForLauncher{350};

// One that is in no view may connect when it likes.
bool IsWaitedFor(const WorkerProcess& worker, const PodView& view) {
  return !worker.standby() && (worker.connection.open() || view.Lists(worker));
}

}  // namespace

WorkerWatch::WorkerWatch(const WorkerTableOptions* options, WorkerProcesses* processes,
                         LauncherPeer* launcher)
    : options_(options), processes_(processes), launcher_(launcher) {}

std::vector<WorkerProcess> WorkerWatch::Tick(SteadyTime now, const PodView& view) {
  ForgiveOwnSleep(now);
  AskAboutThoseThatStandStill(now, view);
  const auto fence =
      options_->without.Has(GlueClause::kFenceWaited) ? -options_->fence : options_->fence;
  return processes_->TakeDead(now, fence, launcher_->lost_at());
}

void WorkerWatch::OnHalt(const ProcessName& name, bool stopped, SteadyTime now) {
  WorkerProcess* worker = processes_->Find(name.standby, name.slot, name.incarnation);
  if (worker == nullptr) return;
  if (!stopped) return worker->liveness.Continued();
  worker->liveness.Halted(now);
}

std::optional<SteadyTime> WorkerWatch::NextWake(const PodView& view) const {
  std::optional<SteadyTime> wake;
  for (const WorkerProcess& worker : processes_->all()) {
    if (!worker.liveness.halted_at() || !IsWaitedFor(worker, view)) continue;
    const SteadyTime at = AskedAt(worker);
    if (!wake || at < *wake) wake = at;
  }
  return wake;
}

// The other ranks wait for a stopped worker in the ring, and can't tell it from one that computes
// for long, so it is killed. One that a debugger holds is left alone until its fence.
void WorkerWatch::OnState(const json& frame, SteadyTime now) {
  WorkerProcess* worker =
      processes_->Find(false, static_cast<int>(fields::Integer(frame, "slot", -1)),
                       fields::Unsigned(frame, "incarnation"));
  if (worker == nullptr) return;
  // The worker runs: what the signal stopped was the script that started it, or the worker has been
  // let go on.
  if (fields::Text(frame, "state") != "T") return worker->liveness.Continued();
  const auto still = worker->liveness.StillFor(now);
  if (still < options_->stopped_for) return;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(still).count();
  const bool halted = worker->liveness.halted_at().has_value();
  launcher_->Kill(*worker, std::string("stopped by a signal, ") +
                               (halted ? "as its launcher heard " : "and silent for ") +
                               std::to_string(ms) + (halted ? " ms ago" : " ms") +
                               " (elasticPolicy.stoppedWorkerSeconds)");
}

// What was said meanwhile has yet to be read.
void WorkerWatch::ForgiveOwnSleep(SteadyTime now) {
  const auto slept = now - ticked_.value_or(now);
  ticked_ = now;
  if (slept >= kLongTickForLauncher) launcher_->ForgiveSleep(slept);
  if (slept < kLongTick) return;
  for (WorkerProcess& worker : processes_->all()) worker.liveness.ForgiveOwnSleep(slept, now);
}

void WorkerWatch::AskAboutThoseThatStandStill(SteadyTime now, const PodView& view) {
  for (WorkerProcess& worker : processes_->all()) {
    if (!IsWaitedFor(worker, view) || now < AskedAt(worker)) continue;
    worker.liveness.LauncherAsked(now);
    launcher_->Look(worker);
  }
}

SteadyTime WorkerWatch::AskedAt(const WorkerProcess& worker) const {
  return worker.liveness.AskAt(options_->stopped_for, options_->ping);
}

}  // namespace ringmaster::app
