#include "tests/sim/launchers.h"

#include <algorithm>
#include <utility>

#include "common/failure_policy/failure_policy.h"
#include "sidecar/launcher/frames.h"

namespace ringmaster::app::sim {
namespace {

constexpr Micros kFirstBackoff = 50 * kMs, kLastBackoff = 1000 * kMs;
constexpr Micros kGrace = 8 * kSecond;
constexpr Micros kFailureGrace = 3 * kSecond;

}  // namespace

void Launchers::Begin(int index) {
  if (std::exchange(parts_.pods[index]->launcher.begun, true)) return;
  for (int slot = 0; slot < parts_.job.slots; ++slot) StartWorker(index, slot);
  if (parts_.job.standbys > 0) StartStandby(index);
  Connect(index);
}

// ---- The link

void Launchers::Connect(int index) {
  SimPod& pod = *parts_.pods[index];
  Launcher& launcher = pod.launcher;
  if (pod.gone || launcher.ended || launcher.stream != 0) return;
  // It stands still as well, so it does not try in vain, and ever more seldom.
  if (pod.machine_until > parts_.time.now())
    return parts_.time.After(kFirstBackoff, [this, index] { Connect(index); });
  if ((launcher.stream = parts_.links.Open(index, nullptr)) == 0) {
    launcher.backoff = std::clamp(launcher.backoff * 2, kFirstBackoff, kLastBackoff);
    parts_.time.After(launcher.backoff, [this, index] { Connect(index); });
    return;
  }
  launcher.backoff = 0;
  launcher.sidecar_seen = true;
  launcher.slots.SidecarFound(Now());
  launcher.shutdown.SidecarFound();
  json running = json::array();
  for (const Child& child : launcher.children) {
    running.push_back({{"slot", child.slot},
                       {"incarnation", child.incarnation},
                       {"pid", child.worker->pid},
                       {"beganUs", launcher::MonotonicUs(child.began_local)},
                       {"standby", child.slot < 0},
                       {"stopped", child.worker->stopped_until > parts_.time.now()},
                       {"standbyIncarnation", child.standby_incarnation}});
  }
  parts_.links.SendToSidecar(launcher.stream, {{"t", "hello"},
                                               {"version", 1},
                                               {"role", "launcher"},
                                               {"slots", parts_.job.slots},
                                               {"standbys", parts_.job.standbys},
                                               {"running", running}});
  if (launcher.shutdown.terminating())
    parts_.links.SendToSidecar(launcher.stream,
                               {{"t", "term"}, {"graceSeconds", kGrace / kSecond}});
  for (json& frame : launcher.pending)
    parts_.links.SendToSidecar(launcher.stream, std::move(frame));
  launcher.pending.clear();
}

void Launchers::OnClosed(int index, std::uint64_t stream) {
  Launcher& launcher = parts_.pods[index]->launcher;
  if (launcher.stream != stream) return;
  launcher.stream = 0;
  launcher.slots.SidecarLost(Now());
  Sleep(index);
  // A sidecar takes its workers for dead with it if it stays away for longer and theirs close, too.
  parts_.time.After(parts_.random.Between(kFirstBackoff, 4 * kFirstBackoff),
                    [this, index] { Connect(index); });
}

void Launchers::Send(int index, json frame) {
  Launcher& launcher = parts_.pods[index]->launcher;
  if (launcher.stream == 0) return launcher.pending.push_back(std::move(frame));
  parts_.links.SendToSidecar(launcher.stream, std::move(frame));
}

void Launchers::OnFrame(int index, const json& frame) {
  SimPod& pod = *parts_.pods[index];
  if (pod.gone) return;
  if (pod.machine_until > parts_.time.now()) {
    pod.asleep.push_back([this, index, frame] { OnFrame(index, frame); });
    return;
  }
  const std::string type = frame["t"];
  parts_.journal.Trace([&] { return pod.uid + " launcher <- " + frame.dump(); });
  if (frame.value("terminated", false)) pod.launcher.shutdown.SidecarTerminated();
  if (type == "finish") {
    const bool left = frame.value("left", false);
    if (!parts_.script.finished() && !pod.leaving)
      return parts_.journal.Fail(pod.uid + " tells its launcher to finish");
    if (!parts_.script.finished() && !left)
      return parts_.journal.Fail(pod.uid + " tells its launcher that the job finishes");
    if (!pod.launcher.shutdown.Finish(left)) return;
    pod.launcher.slots.CloseIdle();
    pod.launcher.standby.Cancel();
    for (const Child& child : std::vector<Child>(pod.launcher.children)) {
      if (child.slot < 0) parts_.workers.Exit(child.worker, 137, 9);
    }
    CheckEnd(index);
  } else if (type == "stop") {
    StopAll(index, 0, frame.value("graceSeconds", 5) * kSecond);
  } else if (type == "kill") {
    ++parts_.journal.coverage().kills;
    for (Child& child : pod.launcher.children) {
      if (child.slot != frame["slot"] || child.incarnation != frame["incarnation"]) continue;
      child.ended_by_us = frame.value("byUs", false);
      return parts_.workers.Exit(child.worker, 137, 9);
    }
  } else if (type == "look") {
    const WorkerPtr worker = parts_.pods.Find(index, frame["slot"], frame["incarnation"]);
    const char* state = worker == nullptr                           ? "X"
                        : worker->stopped_until > parts_.time.now() ? "T"
                                                                    : "S";
    Send(index, {{"t", "state"},
                 {"slot", frame["slot"]},
                 {"incarnation", frame["incarnation"]},
                 {"state", state}});
  }
}

// It hears at once that a signal stops its child, or lets it go on.
void Launchers::TellHalt(const WorkerPtr& worker) {
  SimPod& pod = *parts_.pods[worker->pod];
  if (pod.gone || !worker->alive) return;
  if (pod.machine_until > parts_.time.now()) {
    pod.asleep.push_back([this, worker] { TellHalt(worker); });
    return;
  }
  for (const Child& child : pod.launcher.children) {
    if (child.worker != worker || pod.launcher.stream == 0) continue;
    parts_.links.SendToSidecar(
        pod.launcher.stream,
        launcher::HaltFrame({.slot = child.slot,
                             .incarnation = child.incarnation,
                             .stopped = worker->stopped_until > parts_.time.now()}));
  }
}

// ---- Time

// It sleeps until something of its is due.
void Launchers::Sleep(int index) {
  Launcher& launcher = parts_.pods[index]->launcher;
  const auto wake = launcher::Earlier(
      launcher.slots.NextWake(),
      launcher::Earlier(launcher.standby.NextWake(), launcher.shutdown.NextWake()));
  if (!wake || launcher.ended || parts_.pods[index]->gone) return;
  const Micros at =
      std::chrono::duration_cast<std::chrono::microseconds>(wake->time_since_epoch()).count();
  parts_.time.At(std::max(at, parts_.pods[index]->machine_until),
                 [this, index, number = ++launcher.timer] {
                   if (parts_.pods[index]->launcher.timer == number) RunTimers(index);
                 });
}

void Launchers::RunTimers(int index) {
  Launcher& launcher = parts_.pods[index]->launcher;
  if (parts_.pods[index]->gone || launcher.ended) return;
  const launcher::TimePoint now = Now();
  launcher.slots.SidecarReads(launcher.stream == 0 || !parts_.pods.Asleep(*parts_.pods[index]),
                              now);
  for (const launcher::Unfinished& worker : launcher.slots.TakeUnfinished(now)) {
    if (launcher.ending()) continue;
    const bool may_be_right = worker.unheard && launcher.slots.AllIdle();
    parts_.journal.Trace([&] {
      return parts_.pods[index]->uid + "/" + std::to_string(worker.slot) +
             (may_be_right ? " ended, and no word of the job's end" : " ended too soon");
    });
    StopAll(index, may_be_right ? 0 : 1, kFailureGrace);
  }
  for (const int slot : launcher.slots.TakeRestarts(now)) StartWorker(index, slot);
  if (launcher.standby.TakeStart(now)) StartStandby(index);
  if (launcher.shutdown.TakeDrainTooLong(now)) StopAll(index, 0, kGrace / 5);
  if (launcher.shutdown.TakeKill(now)) {
    for (const Child& child : std::vector<Child>(launcher.children))
      parts_.workers.Exit(child.worker, 137, 9);
  }
  CheckEnd(index);
  Sleep(index);
}

launcher::TimePoint Launchers::Now() const {
  return launcher::TimePoint(std::chrono::microseconds(parts_.time.now()));
}

// ---- Processes

void Launchers::StartProcess(int index, int slot, std::uint64_t incarnation) {
  Launcher& launcher = parts_.pods[index]->launcher;
  auto worker = std::make_shared<Worker>();
  worker->pod = index;
  worker->slot = slot;
  worker->standby = slot < 0;
  worker->incarnation = incarnation;
  worker->pid = parts_.pods.NextPid();
  launcher.children.push_back({.slot = slot,
                               .incarnation = incarnation,
                               .worker = worker,
                               .began = Now(),
                               .began_local = PodNow(index)});
  parts_.journal.Trace([&] { return parts_.pods.NameOf(*worker) + " starts"; });
  Send(index,
       launcher::StartedFrame(slot, incarnation, static_cast<pid_t>(worker->pid), PodNow(index)));
  parts_.time.After(parts_.random.Between(20 * kMs, 300 * kMs), [this, worker] {
    parts_.pods.ToWorker(worker, [this, worker] {
      parts_.workers.Connect(worker);
      parts_.workers.Beat(worker);
    });
  });
}

void Launchers::StartWorker(int index, int number) {
  Launcher& launcher = parts_.pods[index]->launcher;
  launcher::Slot& slot = launcher.slots[number];
  if (parts_.pods[index]->gone) return;
  if (launcher.ending()) {
    slot.closed = true;
    return CheckEnd(index);
  }
  StartProcess(index, number, ++slot.incarnation);
  slot.pid = static_cast<pid_t>(launcher.children.back().worker->pid);
}

void Launchers::StartStandby(int index) {
  Launcher& launcher = parts_.pods[index]->launcher;
  if (!launcher.ending() && !parts_.pods[index]->gone)
    StartProcess(index, -1, launcher.standby.NextIncarnation());
}

// The launcher reaps a process.
void Launchers::OnExit(const WorkerPtr& worker, int code, int signal) {
  const int index = worker->pod;
  Launcher& launcher = parts_.pods[index]->launcher;
  auto it = std::find_if(launcher.children.begin(), launcher.children.end(),
                         [&](const Child& child) { return child.worker == worker; });
  if (parts_.pods[index]->gone || it == launcher.children.end()) return;
  const Child child = *it;
  launcher.children.erase(it);
  const launcher::ExitDecision decision = launcher::DecideOnExit({}, code);
  const bool by_us = launcher.ending();
  const bool standby = child.slot < 0;
  const bool restarts =
      !by_us &&
      (standby || (code != 0 && decision.action == failure_policy::Action::kRestartWorker));
  const bool dropped = code == failure_policy::kDroppedExitCode;
  Send(index, {{"t", "exited"},
               {"slot", child.slot},
               {"incarnation", child.incarnation},
               {"pid", worker->pid},
               {"standby", standby},
               {"exitCode", code},
               {"signal", signal},
               {"restarting", restarts},
               {"byUs", by_us || (!standby && (dropped || child.ended_by_us))},
               {"atUs", parts_.pods.Local(*parts_.pods[index])},
               {"message", ""}});
  if (standby) {
    OnStandbyExit(index, child);
  } else {
    launcher.slots[child.slot].pid = 0;
    OnWorkerExit(index, child, code, decision);
  }
  CheckEnd(index);
  Sleep(index);
}

void Launchers::OnStandbyExit(int index, const Child& child) {
  Launcher& launcher = parts_.pods[index]->launcher;
  if (!launcher.ending()) launcher.standby.Died(Now() - child.began, Now());
}

void Launchers::OnWorkerExit(int index, const Child& child, int code,
                             const launcher::ExitDecision& decision) {
  Launcher& launcher = parts_.pods[index]->launcher;
  launcher::Slot& slot = launcher.slots[child.slot];
  if (launcher.ending()) {
    slot.closed = true;
    if (!launcher.shutdown.stopping() && code != 0) launcher.shutdown.SetExitCode(code);
    return;
  }
  if (code == 0) {
    launcher.slots.ExitedWell(child.slot, Now());
  } else if (decision.action == failure_policy::Action::kRestartWorker) {
    Restart(index, child);
  } else {
    StopAll(index, code, kFailureGrace);
  }
}

void Launchers::Restart(int index, const Child& child) {
  launcher::Slot& slot = parts_.pods[index]->launcher.slots[child.slot];
  const auto delay = slot.backoff.AfterDeath(Now() - child.began);
  if (PromoteStandby(index, child.slot)) return;
  if (delay.count() == 0) return StartWorker(index, child.slot);
  slot.restart_at = Now() + delay;
}

bool Launchers::PromoteStandby(int index, int slot) {
  Launcher& launcher = parts_.pods[index]->launcher;
  for (Child& child : launcher.children) {
    if (child.slot >= 0 || child.worker->stopped_until > parts_.time.now()) continue;
    child.standby_incarnation = child.incarnation;
    child.slot = slot;
    child.incarnation = ++launcher.slots[slot].incarnation;
    child.began = Now();
    child.began_local = PodNow(index);
    launcher.slots[slot].pid = static_cast<pid_t>(child.worker->pid);
    ++parts_.journal.coverage().promotions;
    Send(index, {{"t", "promoted"},
                 {"slot", slot},
                 {"incarnation", child.incarnation},
                 {"pid", child.worker->pid}});
    parts_.journal.Trace([&] {
      return parts_.pods.NameOf(*child.worker) + " promoted to slot " + std::to_string(slot);
    });
    launcher.standby.Promoted(Now());
    Sleep(index);
    return true;
  }
  return false;
}

// ---- The end

void Launchers::StopAll(int index, int code, Micros grace) {
  Launcher& launcher = parts_.pods[index]->launcher;
  launcher.shutdown.SetExitCode(code);
  const bool begins = launcher.shutdown.Stop(Now(), std::chrono::milliseconds(grace / kMs));
  if (begins) {
    launcher.standby.Cancel();
    launcher.slots.CloseAll();
    for (const Child& child : std::vector<Child>(launcher.children))
      child.slot < 0 ? parts_.workers.Exit(child.worker, 137, 9)
                     : parts_.workers.EndSoon(child.worker, 143);
  }
  CheckEnd(index);
  Sleep(index);
}

// SIGTERM to the pod: to its launcher's container now, to the sidecar when that has ended; all are
// killed when the grace period is over.
void Launchers::Terminate(int index) {
  Launcher& launcher = parts_.pods[index]->launcher;
  if (launcher.shutdown.terminating()) return;
  using SidecarIs = launcher::Shutdown::SidecarIs;
  const auto sidecar = launcher.stream != 0    ? SidecarIs::kThere
                       : launcher.sidecar_seen ? SidecarIs::kAway
                                               : SidecarIs::kNotSeenYet;
  (void)launcher.shutdown.Terminate(Now(), std::chrono::milliseconds(kGrace * 3 / 4 / kMs),
                                    sidecar);
  if (launcher.begun) Send(index, {{"t", "term"}, {"graceSeconds", kGrace / kSecond}});
  Sleep(index);
  parts_.time.After(kGrace, [this, index] { parts_.kill_pod(index, "its grace period is over"); });
}

void Launchers::CheckEnd(int index) {
  SimPod& pod = *parts_.pods[index];
  Launcher& launcher = pod.launcher;
  const bool over = (launcher.slots.AllClosed() || !launcher.begun) && launcher.children.empty();
  if (!launcher.ending() || !over || std::exchange(launcher.ended, true)) return;
  parts_.journal.Trace([&] { return pod.uid + " launcher ends"; });
  pod.exit_code = launcher.shutdown.FinalExitCode();
  if (launcher.stream != 0) parts_.links.CloseByProcess(launcher.stream);
  parts_.time.After(parts_.random.Between(5 * kMs, 300 * kMs), [this, index] {
    SimPod& ended = *parts_.pods[index];
    if (ended.gone) return;
    ended.terminated = true;
    if (ended.agent == nullptr) return parts_.kill_pod(index, "its containers have ended");
    parts_.to_agent(index, ended.life, [](Agent& agent) { agent.Terminate(); });
  });
}

}  // namespace ringmaster::app::sim
