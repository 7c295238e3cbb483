#include "sidecar/app/worker_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <string>
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
  if (worker.closed_at) {
    // How one ends that rests tells whether the job is over: only the launcher knows.
    const bool told = worker.resting && !worker.finished && !launcher_lost;
    if (!told && worker.same_pids && ProcessEnded(worker.pid)) return true;
    // Workers die with their launcher.
    if (launcher_lost && now - *launcher_lost > kLauncherReconnects) return true;
    if (worker.left || worker.finished) return true;
    return now - *worker.closed_at > fence + kBeyondFence;
  }
  // Silent past its own fence: stopped or wedged. Its library will not use the view when it wakes;
  // it says hello again.
  return worker.connection != 0 && now - worker.heard > fence + kBeyondFence;
}

}  // namespace

// Plain reads: a stream throws when the process goes while it is read.
bool ProcessEnded(int64_t pid) {
  if (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return true;
  int fd = open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  char text[512];
  ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  if (got <= 0) return true;
  text[got] = '\0';
  const char* end = std::strrchr(text, ')');
  return end != nullptr && end[1] == ' ' && (end[2] == 'Z' || end[2] == 'X');
}

WorkerProcess* WorkerProcesses::ByConnection(uint64_t connection) {
  for (WorkerProcess& worker : processes_) {
    if (worker.connection == connection) return &worker;
  }
  return nullptr;
}

WorkerProcess* WorkerProcesses::Find(bool standby, int slot, uint64_t incarnation) {
  for (WorkerProcess& worker : processes_) {
    const bool same =
        standby ? worker.standby_incarnation == incarnation
                : !worker.standby() && worker.slot == slot && worker.incarnation == incarnation;
    if (same) return &worker;
  }
  return nullptr;
}

WorkerProcess* WorkerProcesses::Add(int slot, uint64_t incarnation) {
  WorkerProcess worker;
  worker.slot = slot;
  worker.incarnation = incarnation;
  if (slot < 0) worker.standby_incarnation = incarnation;
  processes_.push_back(worker);
  return &processes_.back();
}

void WorkerProcesses::AddUnheard(uint32_t slot, uint64_t incarnation, SteadyTime now) {
  if (Find(false, static_cast<int>(slot), incarnation) != nullptr) return;
  WorkerProcess* worker = Add(static_cast<int>(slot), incarnation);
  worker->unheard = true;
  worker->heard = now;
  worker->closed_at = now;
}

bool WorkerProcesses::AnyUnheard() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const WorkerProcess& worker) { return worker.unheard; });
}

uint64_t WorkerProcesses::NewerIncarnation(int slot, uint64_t incarnation) const {
  for (const WorkerProcess& worker : processes_) {
    if (worker.slot == slot && worker.incarnation > incarnation) return worker.incarnation;
  }
  return 0;
}

WorkerProcess* WorkerProcesses::Started(const ProcessName& name) {
  if (!name.standby && (name.slot < 0 || name.slot >= slots_)) return nullptr;
  WorkerProcess* worker = Find(name.standby, name.slot, name.incarnation);
  if (worker == nullptr) worker = Add(name.slot, name.incarnation);
  // That it runs doesn't mean that it will connect again: it may be stopped.
  worker->unheard = false;
  if (name.standby_incarnation != 0) worker->standby_incarnation = name.standby_incarnation;
  worker->launcher_pid = name.pid;
  worker->began = name.began;
  if (!worker->same_pids) worker->pid = name.pid;
  return worker;
}

std::vector<uint64_t> WorkerProcesses::KeepOnly(const std::vector<ProcessName>& running) {
  std::vector<uint64_t> promoted;
  std::set<std::pair<int, uint64_t>> named;
  for (const ProcessName& name : running) {
    if (TakeSlot(name)) promoted.push_back(name.standby_incarnation);
    if (WorkerProcess* worker = Started(name)) named.emplace(worker->slot, worker->incarnation);
  }
  std::erase_if(processes_, [&](const WorkerProcess& worker) {
    return named.count({worker.slot, worker.incarnation}) == 0;
  });
  return promoted;
}

bool WorkerProcesses::TakeSlot(const ProcessName& name) {
  if (name.standby || name.standby_incarnation == 0 || name.slot >= slots_) return false;
  WorkerProcess* worker = Find(true, -1, name.standby_incarnation);
  if (worker == nullptr || !worker->standby()) return false;
  worker->slot = name.slot;
  worker->incarnation = name.incarnation;
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
      return worker.standby() && worker.launcher_pid == launcher_pid;
    });
  };
  auto it = standby_with(pid);
  if (it == processes_.end()) it = standby_with(0);
  if (it == processes_.end() || slot < 0 || slot >= slots_) return nullptr;
  it->slot = slot;
  it->incarnation = incarnation;
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
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const WorkerProcess& worker) { return worker.closed_at.has_value(); });
}

bool WorkerProcesses::AnyUngreetedFrom(SteadyTime before) const {
  return std::any_of(processes_.begin(), processes_.end(), [&](const WorkerProcess& worker) {
    return !worker.standby() && !worker.greeted && worker.began < before;
  });
}

bool WorkerProcesses::EverySlotTaken() const {
  std::set<int> slots;
  for (const WorkerProcess& worker : processes_) {
    if (!worker.standby() && !worker.unheard) slots.insert(worker.slot);
  }
  return static_cast<int>(slots.size()) == slots_;
}

bool WorkerProcesses::AnyLiving() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const WorkerProcess& worker) { return !worker.standby(); });
}

std::vector<membership::Worker> WorkerProcesses::Living() const {
  std::vector<membership::Worker> living;
  for (const WorkerProcess& worker : processes_) {
    if (worker.standby()) continue;
    living.push_back({static_cast<uint32_t>(worker.slot), worker.incarnation, worker.tcp,
                      worker.shm, worker.ready, worker.installed > 0, worker.loads, worker.holds});
  }
  std::sort(living.begin(), living.end(),
            [](const auto& a, const auto& b) { return a.slot < b.slot; });
  return living;
}

std::vector<uint32_t> WorkerProcesses::MissingSlots() const {
  std::vector<uint32_t> missing;
  for (int slot = 0; slot < slots_; ++slot) {
    const bool ready = std::any_of(
        processes_.begin(), processes_.end(),
        [slot](const WorkerProcess& worker) { return worker.slot == slot && worker.ready; });
    if (!ready) missing.push_back(static_cast<uint32_t>(slot));
  }
  return missing;
}

bool WorkerProcesses::AllInstalled(const PodView& view) const {
  const auto installed =
      std::count_if(processes_.begin(), processes_.end(), [&view](const WorkerProcess& worker) {
        return view.Lists(worker) && worker.installed >= view.epoch();
      });
  return installed == slots_;
}

}  // namespace ringmaster::app
