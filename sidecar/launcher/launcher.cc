#include "sidecar/launcher/launcher.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "sidecar/launcher/log.h"
#include "sidecar/launcher/process.h"

namespace ringmaster::launcher {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Told by the kernel when the parent goes; a signal that nobody else sends us, so that it can't be
// mistaken for a drain.
constexpr int kParentDied = SIGUSR2;
// A worker that lived shorter than this died "soon after its start".
constexpr seconds kQuick{5};
constexpr seconds kMaxBackoff{30};
// A worker may exit 0 before the sidecar's `finish` is read.
constexpr seconds kFinishGrace{1};
// After a failure nothing is worth waiting for, but scripts may want to flush a log.
constexpr seconds kFailureGrace{3};
constexpr seconds kStandbyGrace{2};
// The next standby's imports would compete with the recovery that has just begun.
constexpr milliseconds kStandbyDelay{1000};

milliseconds BackoffAfter(int quick_deaths) {
  if (quick_deaths <= 1) return milliseconds(0);
  return std::min<milliseconds>(milliseconds(500) * (1 << std::min(quick_deaths - 2, 10)),
                                kMaxBackoff);
}

// Containers of one pod share the kernel's clock, so the sidecar can compare.
int64_t MonotonicUs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace

Launcher::Launcher(Options options)
    : options_(std::move(options)),
      parent_(getppid()),
      link_(
          options_.socket, [this] { return Greeting(); },
          [this](const json& frame) { OnFrame(frame); }),
      slots_(options_.slots) {}

int Launcher::Run() {
  if (!OpenSignals()) return 1;
  for (int slot = 0; slot < options_.slots && !exit_code_; ++slot) StartWorker(slot);
  if (options_.standbys > 0 && !exit_code_) StartStandby();
  while (!(AllClosed() && processes_.empty()) && !orphaned_) {
    WaitForSomething();
    HandleSignals();
    ReapChildren();
    link_.Poll(Clock::now());
    RunTimers();
    link_.Poll(Clock::now());  // what was decided just now goes out at once
  }
  KillEverything();
  link_.Poll(Clock::now());
  return exit_code_.value_or(0);
}

bool Launcher::OpenSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, kParentDied}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signals_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (signals_ < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 ||
      prctl(PR_SET_PDEATHSIG, kParentDied) != 0) {
    LogError("cannot watch processes", {{"error", std::strerror(errno)}});
    return false;
  }
  return true;
}

void Launcher::WaitForSomething() {
  auto wait = std::chrono::ceil<milliseconds>(NextWake() - Clock::now());
  int timeout = static_cast<int>(std::clamp<int64_t>(wait.count(), 0, 60'000));
  pollfd fds[2] = {{signals_, POLLIN, 0}, {link_.fd(), link_.events(), 0}};
  poll(fds, 2, timeout);  // a negative fd is ignored
}

Launcher::TimePoint Launcher::NextWake() const {
  TimePoint wake = link_.wake_at();
  auto consider = [&](const std::optional<TimePoint>& at) {
    if (at) wake = std::min(wake, *at);
  };
  for (const Slot& slot : slots_) {
    consider(slot.restart_at);
    consider(slot.finish_by);
  }
  for (const auto& at : {standby_at_, sweep_at_, term_at_, kill_at_}) consider(at);
  return std::min(wake, Clock::now() + seconds(60));
}

void Launcher::RunTimers() {
  const TimePoint now = Clock::now();
  auto due = [now](std::optional<TimePoint>* at) {
    if (!*at || now < **at) return false;
    at->reset();
    return true;
  };
  for (int i = 0; i < options_.slots; ++i) {
    if (due(&slots_[i].restart_at)) StartWorker(i);
    if (due(&slots_[i].finish_by) && !finishing_ && !Stopping()) {
      LogError(
          "worker ended before the job did: exit code 0 without shutdown() agreed by all ranks",
          {{"slot", std::to_string(i)}});
      StopAll(1, kFailureGrace, "a worker ended before the job did");
    }
  }
  if (due(&standby_at_)) StartStandby();
  if (due(&sweep_at_)) SweepStrays();
  if (due(&term_at_)) {
    StopAll(0, std::max<milliseconds>(options_.grace / 5, seconds(1)),
            link_.fd() >= 0 ? "terminated, and the drain took too long"
                            : "terminated, and no sidecar to drain");
  }
  if (kill_at_ && now >= *kill_at_) {
    SignalAll(SIGKILL);
    kill_at_ = now + seconds(1);
  }
}

void Launcher::HandleSignals() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof info) == sizeof info) {
    switch (static_cast<int>(info.ssi_signo)) {
      case SIGTERM:
      case SIGINT:
      case SIGHUP:
        OnTerminate();
        break;
      case kParentDied:
        // The kernel also sends it when only the thread that started us ended.
        orphaned_ = orphaned_ || getppid() != parent_;
        break;
    }
  }
}

void Launcher::ReapChildren() {
  siginfo_t info{};
  // The zombie keeps its pid, so the group that is killed can't be another's yet.
  while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    const pid_t pid = info.si_pid;
    const bool known = processes_.count(pid) > 0;
    if (known) kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    const bool by_signal = info.si_code != CLD_EXITED;
    if (known)
      OnExit(pid, by_signal ? 128 + info.si_status : info.si_status,
             by_signal ? info.si_status : 0);
    info = {};
  }
}

void Launcher::TellExit(const job::WorkerExit& exit, pid_t pid, const std::string& message) {
  json frame = job::FrameJson(exit);
  frame["t"] = "exited";
  frame["pid"] = pid;
  frame["message"] = message;
  link_.Send(frame);
}

void Launcher::OnExit(pid_t pid, int exit_code, int signal) {
  Process process = processes_[pid];
  processes_.erase(pid);
  if (process.standby()) {
    OnStandbyExit(process, pid, exit_code, signal);
  } else {
    slots_[process.slot].pid = 0;
    const bool by_us = Stopping() || finishing_;
    FailureDecision decision = DecideOnExit(options_.policy, exit_code, signal);
    const bool restarting =
        !by_us && exit_code != 0 && decision.action == FailureAction::kRestartWorker;
    TellExit({.slot = process.slot,
              .exit_code = exit_code,
              .restarting = restarting,
              .by_us = by_us,
              .incarnation = process.incarnation,
              .signal = signal,
              .at_us = MonotonicUs()},
             pid, exit_code == 0 ? "" : decision.reason);
    link_.Poll(Clock::now());  // before anything slow: the others wait for this word
    OnWorkerExit(process, exit_code, signal);
  }
  SweepStrays();
}

void Launcher::OnWorkerExit(const Process& process, int exit_code, int signal) {
  Slot& slot = slots_[process.slot];
  if (Stopping() || finishing_) {
    slot.closed = true;
    // Killed by the stop itself is no failure of the script.
    if (finishing_ && !Stopping() && exit_code != 0) SetExitCode(exit_code);
    return;
  }
  if (exit_code == 0) {
    slot.finish_by = Clock::now() + kFinishGrace;
    return;
  }
  FailureDecision decision = DecideOnExit(options_.policy, exit_code, signal);
  Log("worker exited", {{"slot", std::to_string(process.slot)},
                        {"incarnation", std::to_string(process.incarnation)},
                        {"exit_code", std::to_string(exit_code)},
                        {"action", ActionName(decision.action)},
                        {"reason", decision.reason}});
  switch (decision.action) {
    case FailureAction::kRestartWorker:
      Restart(process.slot, process);
      break;
    case FailureAction::kReplacePod:
    case FailureAction::kFailJob:
      StopAll(exit_code, kFailureGrace, decision.reason);
      break;
    case FailureAction::kIgnore:
      slot.closed = true;
      if (AllClosed()) StopAll(exit_code, kFailureGrace, "all slots are empty");
      break;
  }
}

void Launcher::OnStandbyExit(const Process& process, pid_t pid, int exit_code, int signal) {
  const bool by_us = Stopping() || finishing_;
  TellExit({.exit_code = exit_code,
            .restarting = !by_us,
            .by_us = by_us,
            .incarnation = process.incarnation,
            .signal = signal,
            .standby = true},
           pid, "");
  if (by_us) return;
  const bool quick = Clock::now() - process.began < kQuick;
  standby_deaths_ = quick ? standby_deaths_ + 1 : 1;
  Log("standby exited", {{"exit_code", std::to_string(exit_code)}});
  // Never at once: a script that can't be a standby must not eat the machine.
  standby_at_ = Clock::now() + std::max(kStandbyDelay, BackoffAfter(standby_deaths_));
}

void Launcher::Restart(int slot_index, const Process& died) {
  Slot& slot = slots_[slot_index];
  const bool quick = Clock::now() - died.began < kQuick;
  slot.quick_deaths = quick ? slot.quick_deaths + 1 : 1;
  if (PromoteStandby(slot_index)) return;  // the standbys' own start is held back instead
  milliseconds delay = BackoffAfter(slot.quick_deaths);
  if (delay.count() == 0) {
    StartWorker(slot_index);
  } else {
    slot.restart_at = Clock::now() + delay;
  }
}

bool Launcher::PromoteStandby(int slot_index) {
  auto it = std::find_if(processes_.begin(), processes_.end(),
                         [](const auto& entry) { return entry.second.standby(); });
  if (it == processes_.end()) return false;
  Slot& slot = slots_[slot_index];
  slot.pid = it->first;
  ++slot.incarnation;
  it->second.slot = slot_index;
  it->second.incarnation = slot.incarnation;
  it->second.began = Clock::now();
  link_.Send({{"t", "promoted"},
              {"slot", slot_index},
              {"incarnation", slot.incarnation},
              {"pid", slot.pid}});
  Log("standby promoted",
      {{"slot", std::to_string(slot_index)}, {"incarnation", std::to_string(slot.incarnation)}});
  standby_at_ = Clock::now() + kStandbyDelay;
  return true;
}

void Launcher::SweepStrays() {
  std::set<pid_t> workers;
  std::set<int> families;
  for (const auto& [pid, process] : processes_) {
    workers.insert(pid);
    families.insert(process.family);
  }
  if (KillStrays(workers, families) > 0) sweep_at_ = Clock::now() + milliseconds(20);
}

void Launcher::StartWorker(int slot_index) {
  Slot& slot = slots_[slot_index];
  if (Stopping() || finishing_) {
    slot.closed = true;
    return;
  }
  ++slot.incarnation;
  int family = next_family_++;
  SpawnResult spawned = Spawn(options_.command, options_.environment,
                              WorkerEnvironment(slot_index, slot.incarnation, false), family);
  if (spawned.pid < 0) {
    LogError(spawned.error, {{"slot", std::to_string(slot_index)}});
    slot.closed = true;
    StopAll(127, kFailureGrace, spawned.error);
    return;
  }
  slot.pid = spawned.pid;
  processes_[spawned.pid] = {family, slot_index, slot.incarnation, Clock::now()};
  link_.Send({{"t", "started"},
              {"slot", slot_index},
              {"incarnation", slot.incarnation},
              {"pid", spawned.pid},
              {"standby", false}});
}

void Launcher::StartStandby() {
  if (Stopping() || finishing_) return;
  ++standby_incarnation_;
  int family = next_family_++;
  SpawnResult spawned = Spawn(options_.command, options_.environment,
                              WorkerEnvironment(-1, standby_incarnation_, true), family);
  if (spawned.pid < 0) {
    Log(spawned.error, {{"standby", "true"}});
    return;
  }
  processes_[spawned.pid] = {family, -1, standby_incarnation_, Clock::now()};
  link_.Send({{"t", "started"},
              {"slot", -1},
              {"incarnation", standby_incarnation_},
              {"pid", spawned.pid},
              {"standby", true}});
}

std::vector<std::string> Launcher::WorkerEnvironment(int slot, uint64_t incarnation,
                                                     bool standby) const {
  std::vector<std::string> env;
  auto set = [&env](const char* name, int64_t value) {
    env.push_back(std::string(name) + "=" + std::to_string(value));
  };
  const int local = std::max(slot, 0);
  set("RINGMASTER_SLOT", local);
  set("RINGMASTER_INCARNATION", static_cast<int64_t>(incarnation));
  set("RINGMASTER_STANDBY", standby ? 1 : 0);
  set("HOROVOD_RANK", int64_t{options_.replica_index} * options_.slots + local);
  set("HOROVOD_SIZE", int64_t{options_.replicas} * options_.slots);
  set("HOROVOD_LOCAL_RANK", local);
  set("HOROVOD_LOCAL_SIZE", options_.slots);
  set("HOROVOD_CROSS_RANK", options_.replica_index);
  set("HOROVOD_CROSS_SIZE", options_.replicas);
  return env;
}

std::string Launcher::Greeting() {
  json running = json::array();
  for (const auto& [pid, process] : processes_) {
    running.push_back({{"slot", process.slot},
                       {"incarnation", process.incarnation},
                       {"pid", pid},
                       {"standby", process.standby()}});
  }
  std::string bytes = worker_link::EncodeFrame({{"t", "hello"},
                                                {"version", worker_link::kLinkVersion},
                                                {"role", "launcher"},
                                                {"slots", options_.slots},
                                                {"standbys", options_.standbys},
                                                {"running", std::move(running)}});
  if (terminating_) {
    bytes += worker_link::EncodeFrame({{"t", "term"}, {"graceSeconds", options_.grace.count()}});
  }
  return bytes;
}

void Launcher::OnFrame(const json& frame) {
  const std::string type = worker_link::StringField(frame, "t");
  if (type == "finish") {
    OnFinish();
  } else if (type == "stop") {
    int64_t grace = std::clamp<int64_t>(worker_link::IntField(frame, "graceSeconds", 5), 0, 3600);
    StopAll(0, seconds(grace), worker_link::StringField(frame, "reason"));
  } else if (type == "kill") {
    OnKill(frame);
  } else if (type == "error") {
    LogError("the sidecar refused us", {{"message", worker_link::StringField(frame, "message")}});
  }
}

void Launcher::OnKill(const json& frame) {
  for (const auto& [pid, process] : processes_) {
    if (process.slot != worker_link::IntField(frame, "slot", -2) ||
        static_cast<int64_t>(process.incarnation) !=
            worker_link::IntField(frame, "incarnation", -1)) {
      continue;
    }
    Log("killing a worker", {{"slot", std::to_string(process.slot)},
                             {"reason", worker_link::StringField(frame, "reason")}});
    kill(-pid, SIGKILL);  // its exit is handled as any other: a signal restarts it
  }
}

void Launcher::OnFinish() {
  if (finishing_) return;
  finishing_ = true;
  for (Slot& slot : slots_) {
    slot.closed = slot.closed || slot.pid == 0;
    slot.restart_at.reset();
    slot.finish_by.reset();
  }
  standby_at_.reset();
  for (auto& [pid, process] : processes_) {
    if (process.standby())
      kill(-pid, SIGKILL);  // it waits in rm_init: there is nothing to put in order
  }
}

void Launcher::OnTerminate() {
  if (terminating_) {
    StopAll(0, seconds(1), "terminated again");
    return;
  }
  terminating_ = true;
  Log("terminating", {{"grace_seconds", std::to_string(options_.grace.count())}});
  link_.Send({{"t", "term"}, {"graceSeconds", options_.grace.count()}});
  // The sidecar lets the workers leave at a step boundary. Without one nobody else tells them.
  const milliseconds patience =
      link_.fd() >= 0 ? milliseconds(options_.grace) * 3 / 4 : milliseconds(0);
  term_at_ = Clock::now() + patience;
}

void Launcher::StopAll(int exit_code, milliseconds grace, const std::string& why) {
  SetExitCode(exit_code);
  TimePoint kill_at = Clock::now() + grace;
  if (Stopping()) {
    kill_at_ = std::min(*kill_at_, kill_at);
    return;
  }
  Log("stopping all workers", {{"reason", why}});
  kill_at_ = kill_at;
  standby_at_.reset();
  term_at_.reset();
  for (Slot& slot : slots_) {
    slot.closed = true;
    slot.restart_at.reset();
    slot.finish_by.reset();
  }
  SignalAll(SIGTERM);
}

void Launcher::SignalAll(int signal) {
  for (const auto& [pid, process] : processes_) {
    // A standby sits in rm_init with Python's handlers blocked: TERM would only cost its grace.
    kill(-pid, process.standby() ? SIGKILL : signal);
  }
}

void Launcher::SetExitCode(int code) {
  if (!exit_code_ || *exit_code_ == 0) exit_code_ = code;
}

bool Launcher::AllClosed() const {
  return std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.closed; });
}

}  // namespace ringmaster::launcher
