#include "sidecar/app/worker_census.h"

#include <algorithm>
#include <set>

namespace ringmaster::app {
namespace {

constexpr std::chrono::seconds kWithoutLauncher{2};
constexpr std::chrono::seconds kAfterFence{1};

bool AnyUnheard(const WorkerProcesses& processes) {
  return std::any_of(processes.all().begin(), processes.all().end(),
                     [](const WorkerProcess& worker) { return worker.liveness.unheard(); });
}

// A worker that began before then has not said hello to this sidecar yet.
bool AnyUngreetedFrom(const WorkerProcesses& processes, SteadyTime before) {
  return std::any_of(processes.all().begin(), processes.all().end(),
                     [&](const WorkerProcess& worker) {
                       return !worker.standby() && !worker.connection.greeted() &&
                              worker.identity.BeganBefore(before);
                     });
}

bool EverySlotTaken(const WorkerProcesses& processes) {
  std::set<int> slots;
  for (const WorkerProcess& worker : processes.all()) {
    if (!worker.standby() && !worker.liveness.unheard()) slots.insert(worker.slot());
  }
  return static_cast<int>(slots.size()) == processes.slots();
}

}  // namespace

void WorkerCensus::Start(bool with_view, SteadyTime now) {
  started_at_ = now;
  began_with_view_ = with_view;
}

bool WorkerCensus::IsComplete(const WorkerProcesses& processes, const LauncherPeer& launcher,
                              SteadyTime now) {
  if (!complete_) complete_ = !MayLack(processes, launcher, now);
  return complete_;
}

bool WorkerCensus::IsOverdue(SteadyTime now) const {
  return !complete_ && now - started_at_ >= kWithoutLauncher;
}

bool WorkerCensus::MayLack(const WorkerProcesses& processes, const LauncherPeer& launcher,
                           SteadyTime now) const {
  // However long it takes: a worker that a view lists may be using it until its fence has passed.
  if (AnyUnheard(processes)) return true;
  // A sidecar whose state file is lost doesn't know which view a worker uses that began before it.
  // The worker says so when it connects, or its fence passes.
  if (!began_with_view_ && AnyUngreetedFrom(processes, started_at_) &&
      now - started_at_ < fence_ + kAfterFence)
    return true;
  if (now - started_at_ >= kWithoutLauncher) return false;
  // The launcher, or without one every slot, tells which workers live.
  const bool all_named = launcher.seen() || EverySlotTaken(processes);
  return !all_named || (processes.all().empty() && launcher.connected());
}

}  // namespace ringmaster::app
