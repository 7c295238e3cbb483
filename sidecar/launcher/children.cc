#include "sidecar/launcher/children.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "sidecar/launcher/clock.h"
#include "sidecar/launcher/log.h"

namespace ringmaster::launcher {
namespace {

constexpr std::chrono::milliseconds kBetweenSweeps{20};

// Though it has not been reaped yet.
bool HasEnded(pid_t pid) {
  const char state = StateOfProcess(pid);
  return state == 'Z' || state == 'X';
}

int64_t InitialRank(const Options& options, int slot) {
  return int64_t{options.replica_index} * options.slots + slot;
}

std::vector<std::string> WorkerEnvironment(const Options& options, int slot, uint64_t incarnation) {
  std::vector<std::string> env;
  auto set = [&env](const char* name, int64_t value) {
    env.push_back(std::string(name) + "=" + std::to_string(value));
  };
  const int local = std::max(slot, 0);
  set("RINGMASTER_SLOT", local);
  set("RINGMASTER_INCARNATION", static_cast<int64_t>(incarnation));
  set("RINGMASTER_STANDBY", slot < 0 ? 1 : 0);
  set("HOROVOD_RANK", InitialRank(options, local));
  set("HOROVOD_SIZE", int64_t{options.replicas} * options.slots);
  set("HOROVOD_LOCAL_RANK", local);
  set("HOROVOD_LOCAL_SIZE", options.slots);
  set("HOROVOD_CROSS_RANK", options.replica_index);
  set("HOROVOD_CROSS_SIZE", options.replicas);
  if (!options.own_gpus.empty())
    env.push_back("CUDA_VISIBLE_DEVICES=" + options.own_gpus[static_cast<size_t>(local)]);
  return env;
}

}  // namespace

StartedProcess Children::Start(int slot, uint64_t incarnation, TimePoint now,
                               const std::vector<std::string>& own) {
  const int family = next_family_++;
  const Output::Files files = output_.Open(family, Label(slot));
  StartedProcess started =
      StartProcess(options_->command, options_->environment,
                   MergeEnvironment(WorkerEnvironment(*options_, slot, incarnation), own), family,
                   files.output, files.error);
  if (started.pid >= 0)
    children_[started.pid] = {
        .family = family, .slot = slot, .incarnation = incarnation, .began = now};
  return started;
}

// The number that the worker finds in HOROVOD_RANK: it stays the same when others come and go.
std::string Children::Label(int slot) const {
  return slot < 0 ? "standby" : std::to_string(InitialRank(*options_, slot));
}

pid_t Children::PromoteStandby(int slot, uint64_t incarnation, TimePoint now) {
  for (auto& [pid, child] : children_) {
    if (!child.standby() || child.stopped || HasEnded(pid)) continue;
    child.slot = slot;
    child.standby_incarnation = std::exchange(child.incarnation, incarnation);
    child.began = now;
    output_.Label(child.family, Label(slot));
    return pid;
  }
  return 0;
}

// A process that a debugger holds is hidden from us here; of one that was stopped and went on only
// the latter is left to be heard.
std::optional<Child> Children::NextHalt() {
  siginfo_t info{};
  while (waitid(P_ALL, 0, &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 && info.si_pid != 0) {
    const auto known = children_.find(info.si_pid);
    if (known != children_.end()) {
      known->second.stopped = info.si_code == CLD_STOPPED;
      return known->second;
    }
    info = {};
  }
  return std::nullopt;
}

bool Children::Stopped(pid_t pid) const {
  const auto known = children_.find(pid);
  return known != children_.end() && known->second.stopped;
}

std::optional<ChildExit> Children::ReapNext() {
  siginfo_t info{};
  // The zombie keeps its pid, so the group that is killed can't be another's yet.
  while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    const pid_t pid = info.si_pid;
    const auto known = children_.find(pid);
    if (known != children_.end()) kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    if (known != children_.end()) {
      const bool by_signal = info.si_code != CLD_EXITED;
      ChildExit exit{pid, known->second, by_signal ? 128 + info.si_status : info.si_status,
                     by_signal ? info.si_status : 0};
      children_.erase(known);
      return exit;
    }
    info = {};
  }
  return std::nullopt;
}

void Children::Kill(int64_t slot, int64_t incarnation, const std::string& reason, bool by_us) {
  for (auto& [pid, child] : children_) {
    if (child.slot != slot || static_cast<int64_t>(child.incarnation) != incarnation) continue;
    Log("killing a worker", {{"slot", std::to_string(child.slot)}, {"reason", reason}});
    child.ended_by_us = by_us;
    kill(-pid, SIGKILL);  // its exit is handled as any other: a signal restarts it
  }
}

void Children::Signal(int slot, int signal) const {
  for (const auto& [pid, child] : children_) {
    if (child.slot == slot) kill(-pid, signal);
  }
}

// They wait in rm_init: there is nothing to put in order.
void Children::KillStandbys() const {
  for (const auto& [pid, child] : children_) {
    if (child.standby()) kill(-pid, SIGKILL);
  }
}

void Children::SignalAll(int signal) const {
  for (const auto& [pid, child] : children_) {
    // A standby sits in rm_init with Python's handlers blocked: TERM would only cost its grace.
    kill(-pid, child.standby() ? SIGKILL : signal);
  }
}

void Children::SweepStrays(TimePoint now) {
  std::set<pid_t> workers;
  std::set<int> families;
  for (const auto& [pid, child] : children_) {
    workers.insert(pid);
    families.insert(child.family);
  }
  // With one slot what nobody is known to have started is left of the worker before.
  const bool of_others = options_->slots == 1 || children_.empty();
  const int killed = KillStrays(workers, families, of_others);
  // Said once, however long they take to die.
  if (killed > 0 && !sweeping_)
    Log("killed processes that a worker had left behind", {{"count", std::to_string(killed)}});
  sweeping_ = killed > 0;
  if (sweeping_) sweep_at_ = now + kBetweenSweeps;
}

nlohmann::json Children::Running() const {
  nlohmann::json running = nlohmann::json::array();
  for (const auto& [pid, child] : children_) {
    running.push_back({{"slot", child.slot},
                       {"incarnation", child.incarnation},
                       {"pid", pid},
                       {"beganUs", MonotonicUs(child.began)},
                       {"standby", child.standby()},
                       {"stopped", child.stopped},
                       {"standbyIncarnation", child.standby_incarnation}});
  }
  return running;
}

}  // namespace ringmaster::launcher
