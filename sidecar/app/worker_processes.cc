#include "sidecar/app/worker_processes.h"

#include <algorithm>
#include <set>
#include <utility>

namespace ringmaster::app {
namespace {

using std::chrono::milliseconds;

// A launcher's connection that is opened again is seldom away for longer than this, and a launcher
// that lives tells of an exit sooner.
constexpr milliseconds kLauncherReconnects{500};
constexpr milliseconds kBeyondFence{1000};

bool LooksDead(const WorkerProcess& worker, SteadyTime now, milliseconds fence,
               std::optional<SteadyTime> launcher_lost) {
  const WorkerStage& stage = worker.stage;
  if (const auto closed_at = worker.liveness.closed_at()) {
    // How one ends that rests tells whether the job is over: only the launcher knows.
    const bool told = stage.resting() && !stage.finished() && !launcher_lost;
    if (!told && worker.identity.HasEnded()) return true;
    // Workers die with their launcher.
    if (launcher_lost && now - *launcher_lost > kLauncherReconnects) return true;
    if (stage.done()) return true;
    return now - *closed_at > fence + kBeyondFence;
  }
  // Silent past its own fence: stopped or wedged. Its library will not use the view when it wakes;
  // it says hello again.
  return worker.connection.open() && worker.liveness.SilentFor(now) > fence + kBeyondFence;
}

}  // namespace

WorkerProcess* WorkerProcesses::ByConnection(uint64_t connection) {
  for (WorkerProcess& worker : processes_) {
    if (worker.connection.id() == connection) return &worker;
  }
  return nullptr;
}

WorkerProcess* WorkerProcesses::Find(bool standby, int slot, uint64_t incarnation) {
  for (WorkerProcess& worker : processes_) {
    if (worker.identity.Is(standby, slot, incarnation)) return &worker;
  }
  return nullptr;
}

WorkerProcess* WorkerProcesses::Add(int slot, uint64_t incarnation) {
  return &processes_.emplace_back(slot, incarnation);
}

void WorkerProcesses::AddUnheard(uint32_t slot, uint64_t incarnation, SteadyTime now) {
  if (Find(false, static_cast<int>(slot), incarnation) != nullptr) return;
  Add(static_cast<int>(slot), incarnation)->liveness.ExpectedByView(now);
}

uint64_t WorkerProcesses::NewerIncarnation(int slot, uint64_t incarnation) const {
  for (const WorkerProcess& worker : processes_) {
    const uint64_t other = worker.identity.incarnation();
    if (worker.slot() == slot && other > incarnation) return other;
  }
  return 0;
}

WorkerProcess* WorkerProcesses::Started(const ProcessName& name) {
  if (!name.standby && (name.slot < 0 || name.slot >= slots_)) return nullptr;
  WorkerProcess* worker = Find(name.standby, name.slot, name.incarnation);
  if (worker == nullptr) worker = Add(name.slot, name.incarnation);
  worker->liveness.NamedByLauncher();
  worker->identity.NamedByLauncher(name);
  return worker;
}

std::vector<uint64_t> WorkerProcesses::KeepOnly(const std::vector<ProcessName>& running) {
  std::vector<uint64_t> promoted;
  std::set<std::pair<int, uint64_t>> named;
  for (const ProcessName& name : running) {
    if (TakeSlot(name)) promoted.push_back(name.standby_incarnation);
    if (WorkerProcess* worker = Started(name))
      named.emplace(worker->slot(), worker->identity.incarnation());
  }
  std::erase_if(processes_, [&](const WorkerProcess& worker) {
    return named.count({worker.slot(), worker.identity.incarnation()}) == 0;
  });
  return promoted;
}

bool WorkerProcesses::TakeSlot(const ProcessName& name) {
  if (name.standby || name.standby_incarnation == 0 || name.slot >= slots_) return false;
  WorkerProcess* worker = Find(true, -1, name.standby_incarnation);
  if (worker == nullptr || !worker->standby()) return false;
  worker->identity.TakeSlot(name.slot, name.incarnation);
  return true;
}

bool WorkerProcesses::Exited(const job::WorkerExit& exit) {
  WorkerProcess* worker = Find(exit.standby, exit.slot, exit.incarnation);
  if (worker == nullptr) return false;
  processes_.erase(processes_.begin() + (worker - processes_.data()));
  return true;
}

WorkerProcess* WorkerProcesses::Promote(int slot, uint64_t incarnation, int64_t pid) {
  // The launcher may have named it as running before it said so.
  if (Find(false, slot, incarnation) != nullptr) return nullptr;
  // One that has said hello before the launcher named it can only be the one that is meant. Any
  // other would be wrong: the news may be old, and the standby that was promoted dead since.
  const auto standby_with = [this](int64_t launcher_pid) {
    return std::find_if(processes_.begin(), processes_.end(), [&](const WorkerProcess& worker) {
      return worker.standby() && worker.identity.launcher_pid() == launcher_pid;
    });
  };
  auto it = standby_with(pid);
  if (it == processes_.end()) it = standby_with(0);
  if (it == processes_.end() || slot < 0 || slot >= slots_) return nullptr;
  it->identity.TakeSlot(slot, incarnation);
  return &*it;
}

std::vector<WorkerProcess> WorkerProcesses::TakeDead(SteadyTime now, milliseconds fence,
                                                     std::optional<SteadyTime> launcher_lost) {
  std::vector<WorkerProcess> dead;
  std::erase_if(processes_, [&](const WorkerProcess& worker) {
    if (!LooksDead(worker, now, fence, launcher_lost)) return false;
    dead.push_back(worker);
    return true;
  });
  return dead;
}

bool WorkerProcesses::Doubtful() const {
  return std::any_of(processes_.begin(), processes_.end(), [](const WorkerProcess& worker) {
    return worker.liveness.closed_at().has_value();
  });
}

bool WorkerProcesses::AnyLiving() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const WorkerProcess& worker) { return !worker.standby(); });
}

std::vector<membership::Worker> WorkerProcesses::Living() const {
  std::vector<membership::Worker> living;
  for (const WorkerProcess& worker : processes_) {
    if (worker.standby()) continue;
    living.push_back({static_cast<uint32_t>(worker.slot()), worker.identity.incarnation(),
                      worker.tcp, worker.shm, worker.stage.ready(), worker.views.installed() > 0,
                      worker.stage.takes_state(), worker.views.holds()});
  }
  std::sort(living.begin(), living.end(),
            [](const auto& a, const auto& b) { return a.slot < b.slot; });
  return living;
}

std::vector<uint32_t> WorkerProcesses::MissingSlots() const {
  std::vector<uint32_t> missing;
  for (int slot = 0; slot < slots_; ++slot) {
    const bool ready =
        std::any_of(processes_.begin(), processes_.end(), [slot](const WorkerProcess& worker) {
          return worker.slot() == slot && worker.stage.ready();
        });
    if (!ready) missing.push_back(static_cast<uint32_t>(slot));
  }
  return missing;
}

bool WorkerProcesses::AllInstalled(const PodView& view) const {
  const auto installed =
      std::count_if(processes_.begin(), processes_.end(),
                    [&view](const WorkerProcess& worker) { return view.HasBuilt(worker); });
  return installed == slots_;
}

}  // namespace ringmaster::app
