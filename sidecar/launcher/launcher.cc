#include "sidecar/launcher/launcher.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"
#include "sidecar/launcher/frames.h"
#include "sidecar/launcher/log.h"
#include "sidecar/launcher/process.h"

namespace ringmaster::launcher {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

// After a failure nothing is worth waiting for, but scripts may want to flush a log.
constexpr seconds kFailureGrace{3};
constexpr seconds kLongestWait{60};
// How long the reader of the launcher's output gets to take what is left of it.
constexpr seconds kLastWords{2};

// How long before the end of the grace period the launcher stops the workers by itself. A sidecar
// that can has it stop them half a second earlier, or less where there is little time
// (app::TimeForBoundary).
milliseconds DrainReserve(milliseconds grace) {
  return std::min(milliseconds(1500), grace * 3 / 8);
}

}  // namespace

Launcher::Launcher(Options options)
    : options_(std::move(options)),
      link_(
          options_.socket, [this] { return Greeting(); },
          [this](const json& frame) { OnFrame(frame); }),
      children_(&options_),
      slots_(options_.slots),
      library_(Lend()) {
  if (options_.foreign) foreign_.emplace(Lend());
}

PodParts Launcher::Lend() {
  return {.options = &options_,
          .slots = &slots_,
          .children = &children_,
          .link = &link_,
          .shutdown = &shutdown_,
          .fail = [this](int code, const std::string& why) { StopAll(code, kFailureGrace, why); }};
}

int Launcher::Run() {
  if (!signals_.Open()) {
    LogError("cannot watch processes", {{"error", std::strerror(errno)}});
    return 1;
  }
  foreign_ ? foreign_->Begin() : library_.Begin();
  while (!(slots_.AllClosed() && children_.empty()) && !orphaned_) {
    WaitForSomething();
    PassLog();
    HandleSignals();
    while (auto child = children_.NextHalt()) OnHalt(*child);
    while (auto exit = children_.ReapNext()) {
      children_.output()->Pass(Clock::now());  // its last words come before what is said of its end
      OnExit(*exit);
    }
    children_.output()->Pass(Clock::now());
    link_.Poll(Clock::now());
    NoteSidecar();
    if (foreign_) foreign_->Poll(Clock::now());
    RunTimers();
    link_.Poll(Clock::now());  // what was decided just now goes out at once
  }
  KillEverything();
  const TimePoint last = Clock::now() + kLastWords;
  children_.output()->Finish(last);
  FinishLog(last);
  link_.Poll(Clock::now());
  return shutdown_.FinalExitCode();
}

void Launcher::WaitForSomething() {
  std::optional<TimePoint> wake = std::min(link_.wake_at(), Clock::now() + kLongestWait);
  if (foreign_) wake = std::min(*wake, foreign_->NextWake());
  for (const auto& at :
       {slots_.NextWake(), library_.NextWake(), children_.NextWake(), shutdown_.NextWake()}) {
    wake = Earlier(wake, at);
  }
  const auto wait = std::chrono::ceil<milliseconds>(*wake - Clock::now());
  const int timeout = static_cast<int>(std::clamp<int64_t>(wait.count(), 0, 60'000));
  std::vector<pollfd> fds = {
      {signals_.fd(), POLLIN, 0}, {link_.fd(), link_.events(), 0}, {LogWaitsFor(), POLLOUT, 0}};
  children_.output()->AddTo(&fds);
  if (foreign_) foreign_->AddTo(&fds);
  poll(fds.data(), fds.size(), timeout);  // a negative fd is ignored
}

void Launcher::HandleSignals() {
  const Signals::Received received = signals_.Read();
  for (int i = 0; i < received.terminate; ++i) OnTerminate();
  orphaned_ = orphaned_ || received.orphaned;
}

void Launcher::RunTimers() {
  const TimePoint now = Clock::now();
  slots_.SidecarReads(link_.IsRead(), now);
  for (const Unfinished& worker : slots_.TakeUnfinished(now)) {
    if (!shutdown_.ending()) OnUnfinished(worker);
  }
  library_.StartDue(now);
  if (children_.TakeSweep(now)) children_.SweepStrays(Clock::now());
  if (shutdown_.TakeDrainTooLong(now)) {
    const milliseconds left =
        shutdown_.drains() ? DrainReserve(options_.grace) : milliseconds(options_.grace) / 5;
    StopAll(0, std::max<milliseconds>(left, seconds(1)),
            shutdown_.drains() ? "terminated, and the drain took too long"
                               : "terminated, and no sidecar to drain");
  }
  if (shutdown_.TakeKill(now)) children_.SignalAll(SIGKILL);
}

void Launcher::OnUnfinished(const Unfinished& worker) {
  // The operator sees how the pods of the others end, so it can tell whether the job has ended.
  if (worker.unheard && slots_.AllIdle()) {
    return StopAll(0, kFailureGrace, "all workers exited 0 while the sidecar was away");
  }
  LogError("worker ended before the job did: exit code 0 without shutdown() agreed by all ranks",
           {{"slot", std::to_string(worker.slot)}});
  StopAll(1, kFailureGrace, "a worker ended before the job did");
}

void Launcher::NoteSidecar() {
  const bool connected = link_.fd() >= 0;
  // It may have been made and have broken in one look.
  const bool anew = std::exchange(connections_, link_.connections()) != link_.connections();
  const bool was_connected = std::exchange(connected_, connected);
  if (was_connected == connected && !anew) return;
  if (anew && was_connected) slots_.SidecarLost(Clock::now());
  if (anew) slots_.SidecarFound(Clock::now());
  connected ? shutdown_.SidecarFound() : slots_.SidecarLost(Clock::now());
}

// ---- Processes that stand still

// A sidecar that is away hears it by the next greeting.
void Launcher::OnHalt(const Child& child) {
  if (link_.fd() >= 0) link_.Send(HaltFrame(child));
}

// ---- Processes that end

void Launcher::OnExit(const ChildExit& exit) {
  foreign_ ? foreign_->OnExit(exit) : library_.OnExit(exit);
  children_.SweepStrays(Clock::now());
}

// ---- The sidecar

std::string Launcher::Greeting() const {
  std::string bytes =
      worker_link::EncodeFrame({{"t", "hello"},
                                {"version", worker_link::kLinkVersion},
                                {"role", "launcher"},
                                {"slots", options_.slots},
                                {"standbys", options_.standbys},
                                {"running", foreign_ ? foreign_->Running() : children_.Running()}});
  if (shutdown_.terminating()) {
    bytes += worker_link::EncodeFrame({{"t", "term"}, {"graceSeconds", options_.grace.count()}});
  }
  return bytes;
}

void Launcher::OnFrame(const json& frame) {
  const std::string type = fields::Text(frame, "t");
  const bool ends = type == "finish" || type == "stop";
  if (ends && fields::Flag(frame, "terminated")) shutdown_.SidecarTerminated();
  if (type == "finish") {
    OnFinish(fields::Flag(frame, "left"));
  } else if (type == "stop") {
    const int64_t grace = std::clamp<int64_t>(fields::Integer(frame, "graceSeconds", 5), 0, 3600);
    StopAll(0, seconds(grace), fields::Text(frame, "reason"));
  } else if (type == "kill") {
    const int64_t slot = fields::Integer(frame, "slot", -2);
    const int64_t incarnation = fields::Integer(frame, "incarnation", -1);
    const std::string reason = fields::Text(frame, "reason");
    const bool by_us = fields::Flag(frame, "byUs");
    foreign_ ? foreign_->Kill(slot, incarnation, reason, by_us)
             : children_.Kill(slot, incarnation, reason, by_us);
  } else if (type == "look") {
    ReportState(frame);
  } else if (type == "error") {
    LogError("the sidecar refused us", {{"message", fields::Text(frame, "message")}});
  }
}

// The sidecar hears nothing of a worker. Its pids may be others than the workers'; ours are theirs.
void Launcher::ReportState(const json& frame) {
  const auto pid = static_cast<pid_t>(fields::Integer(frame, "pid"));
  link_.Send({{"t", "state"},
              {"slot", fields::Integer(frame, "slot", -1)},
              {"incarnation", fields::Unsigned(frame, "incarnation")},
              {"state", std::string(1, StateOfProcess(pid))}});
}

void Launcher::OnFinish(bool left) {
  if (!shutdown_.Finish(left)) return;
  foreign_ ? foreign_->OnEnding() : library_.OnEnding();
  slots_.CloseIdle();
  children_.KillStandbys();
}

void Launcher::OnTerminate() {
  // The sidecar lets the workers leave at a step boundary. Without one nothing else tells them.
  using SidecarIs = Shutdown::SidecarIs;
  const auto sidecar = link_.fd() >= 0           ? SidecarIs::kThere
                       : link_.connections() > 0 ? SidecarIs::kAway
                                                 : SidecarIs::kNotSeenYet;
  const milliseconds patience = options_.grace - DrainReserve(options_.grace);
  if (!shutdown_.Terminate(Clock::now(), patience, sidecar))
    return StopAll(0, seconds(1), "terminated again");
  Log("terminating", {{"grace_seconds", std::to_string(options_.grace.count())}});
  link_.Send({{"t", "term"}, {"graceSeconds", options_.grace.count()}});
}

void Launcher::StopAll(int exit_code, milliseconds grace, const std::string& why) {
  shutdown_.SetExitCode(exit_code);
  if (!shutdown_.Stop(Clock::now(), grace)) return;
  foreign_ ? foreign_->OnEnding() : library_.OnEnding();
  Log("stopping all workers", {{"reason", why}});
  slots_.CloseAll();
  children_.SignalAll(SIGTERM);
}

}  // namespace ringmaster::launcher
