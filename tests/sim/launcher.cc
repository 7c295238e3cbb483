// The launcher of a pod: what it decides by is sidecar/launcher's (slots, restarts, standbys, what
// an exit means, how it ends), in the order of launcher.cc; processes and socket are played.
#include <algorithm>
#include <utility>

#include "common/failure_policy/failure_policy.h"
#include "sidecar/launcher/frames.h"
#include "tests/sim/world.h"

namespace ringmaster::app::sim {
namespace {

constexpr Micros kFirstBackoff = 50 * kMs, kLastBackoff = 1000 * kMs;
constexpr Micros kGrace = 8 * kSecond;
constexpr Micros kFailureGrace = 3 * kSecond;

}  // namespace

// ---- The link

void World::LauncherConnect(int index) {
  SimPod& pod = *pods_[index];
  Launcher& launcher = pod.launcher;
  if (pod.gone || launcher.ended || launcher.stream != 0) return;
  if (pod.machine_until > time_.now() || (launcher.stream = Connect(index, nullptr)) == 0) {
    launcher.backoff = std::clamp(launcher.backoff * 2, kFirstBackoff, kLastBackoff);
    time_.After(launcher.backoff, [this, index] { LauncherConnect(index); });
    return;
  }
  launcher.backoff = 0;
  launcher.slots.SidecarFound(LauncherNow());
  json running = json::array();
  for (const Child& child : launcher.children) {
    running.push_back({{"slot", child.slot},
                       {"incarnation", child.incarnation},
                       {"pid", child.worker->pid},
                       {"beganUs", launcher::MonotonicUs(child.began_local)},
                       {"standby", child.slot < 0},
                       {"stopped", child.worker->stopped_until > time_.now()},
                       {"standbyIncarnation", child.standby_incarnation}});
  }
  SendToSidecar(launcher.stream, {{"t", "hello"},
                                  {"version", 1},
                                  {"role", "launcher"},
                                  {"slots", slots_},
                                  {"standbys", standbys_},
                                  {"running", running}});
  if (launcher.shutdown.terminating())
    SendToSidecar(launcher.stream, {{"t", "term"}, {"graceSeconds", kGrace / kSecond}});
  for (json& frame : launcher.pending) SendToSidecar(launcher.stream, std::move(frame));
  launcher.pending.clear();
}

void World::LauncherClosed(int index, std::uint64_t stream) {
  Launcher& launcher = pods_[index]->launcher;
  if (launcher.stream != stream) return;
  launcher.stream = 0;
  launcher.slots.SidecarLost(LauncherNow());
  LauncherSleeps(index);
  // A sidecar takes its workers for dead with it if it stays away for longer and theirs close, too.
  time_.After(random_.Between(kFirstBackoff, 4 * kFirstBackoff),
              [this, index] { LauncherConnect(index); });
}

void World::LauncherSend(int index, json frame) {
  Launcher& launcher = pods_[index]->launcher;
  if (launcher.stream == 0) return launcher.pending.push_back(std::move(frame));
  SendToSidecar(launcher.stream, std::move(frame));
}

void World::LauncherFrame(int index, const json& frame) {
  SimPod& pod = *pods_[index];
  if (pod.gone) return;
  if (pod.machine_until > time_.now()) {
    pod.asleep.push_back([this, index, frame] { LauncherFrame(index, frame); });
    return;
  }
  const std::string type = frame["t"];
  Trace([&] { return pod.uid + " launcher <- " + frame.dump(); });
  if (frame.value("terminated", false)) pod.launcher.shutdown.SidecarTerminated();
  if (type == "finish") {
    const bool left = frame.value("left", false);
    if (!finishing_ && !pod.leaving) return Fail(pod.uid + " tells its launcher to finish");
    if (!finishing_ && !left) return Fail(pod.uid + " tells its launcher that the job finishes");
    if (!pod.launcher.shutdown.Finish(left)) return;
    pod.launcher.slots.CloseIdle();
    pod.launcher.standby.Cancel();
    for (const Child& child : std::vector<Child>(pod.launcher.children)) {
      if (child.slot < 0) Exit(child.worker, 137, 9);
    }
    CheckLauncherEnd(index);
  } else if (type == "stop") {
    StopAll(index, 0, frame.value("graceSeconds", 5) * kSecond);
  } else if (type == "kill") {
    ++coverage_.kills;
    for (Child& child : pod.launcher.children) {
      if (child.slot != frame["slot"] || child.incarnation != frame["incarnation"]) continue;
      child.ended_by_us = frame.value("byUs", false);
      return Exit(child.worker, 137, 9);
    }
  } else if (type == "look") {
    const WorkerPtr worker = FindProcess(index, frame["slot"], frame["incarnation"]);
    const char* state = worker == nullptr ? "X" : worker->stopped_until > time_.now() ? "T" : "S";
    LauncherSend(index, {{"t", "state"},
                         {"slot", frame["slot"]},
                         {"incarnation", frame["incarnation"]},
                         {"state", state}});
  }
}

// It hears at once that a signal stops its child, or lets it go on.
void World::TellHalt(const WorkerPtr& worker) {
  SimPod& pod = *pods_[worker->pod];
  if (pod.gone || !worker->alive) return;
  if (pod.machine_until > time_.now()) {
    pod.asleep.push_back([this, worker] { TellHalt(worker); });
    return;
  }
  for (const Child& child : pod.launcher.children) {
    if (child.worker != worker || pod.launcher.stream == 0) continue;
    SendToSidecar(pod.launcher.stream,
                  launcher::HaltFrame({.slot = child.slot,
                                       .incarnation = child.incarnation,
                                       .stopped = worker->stopped_until > time_.now()}));
  }
}

// ---- Time

// It sleeps until something of its is due.
void World::LauncherSleeps(int index) {
  Launcher& launcher = pods_[index]->launcher;
  const auto wake = launcher::Earlier(
      launcher.slots.NextWake(),
      launcher::Earlier(launcher.standby.NextWake(), launcher.shutdown.NextWake()));
  if (!wake || launcher.ended || pods_[index]->gone) return;
  const Micros at =
      std::chrono::duration_cast<std::chrono::microseconds>(wake->time_since_epoch()).count();
  time_.At(std::max(at, pods_[index]->machine_until), [this, index, number = ++launcher.timer] {
    if (pods_[index]->launcher.timer == number) RunLauncherTimers(index);
  });
}

void World::RunLauncherTimers(int index) {
  Launcher& launcher = pods_[index]->launcher;
  if (pods_[index]->gone || launcher.ended) return;
  const launcher::TimePoint now = LauncherNow();
  launcher.slots.SidecarReads(launcher.stream == 0 || !Asleep(*pods_[index]), now);
  for (const launcher::Unfinished& worker : launcher.slots.TakeUnfinished(now)) {
    if (launcher.ending()) continue;
    const bool may_be_right = worker.unheard && launcher.slots.AllIdle();
    Trace([&] {
      return pods_[index]->uid + "/" + std::to_string(worker.slot) +
             (may_be_right ? " ended, and no word of the job's end" : " ended too soon");
    });
    StopAll(index, may_be_right ? 0 : 1, kFailureGrace);
  }
  for (const int slot : launcher.slots.TakeRestarts(now)) StartWorker(index, slot);
  if (launcher.standby.TakeStart(now)) StartStandby(index);
  if (launcher.shutdown.TakeDrainTooLong(now)) StopAll(index, 0, kGrace / 5);
  if (launcher.shutdown.TakeKill(now)) {
    for (const Child& child : std::vector<Child>(launcher.children)) Exit(child.worker, 137, 9);
  }
  CheckLauncherEnd(index);
  LauncherSleeps(index);
}

launcher::TimePoint World::LauncherNow() const {
  return launcher::TimePoint(std::chrono::microseconds(time_.now()));
}

// ---- Processes

void World::StartProcess(int index, int slot, std::uint64_t incarnation) {
  Launcher& launcher = pods_[index]->launcher;
  auto worker = std::make_shared<Worker>();
  worker->pod = index;
  worker->slot = slot;
  worker->standby = slot < 0;
  worker->incarnation = incarnation;
  worker->pid = next_pid_++;
  launcher.children.push_back({.slot = slot,
                               .incarnation = incarnation,
                               .worker = worker,
                               .began = LauncherNow(),
                               .began_local = PodNow(index)});
  Trace([&] { return Name(*worker) + " starts"; });
  LauncherSend(index, launcher::StartedFrame(slot, incarnation, static_cast<pid_t>(worker->pid),
                                             PodNow(index)));
  time_.After(random_.Between(20 * kMs, 300 * kMs), [this, worker] {
    ToWorker(worker, [this, worker] {
      WorkerConnect(worker);
      WorkerBeat(worker);
    });
  });
}

void World::StartWorker(int index, int number) {
  Launcher& launcher = pods_[index]->launcher;
  launcher::Slot& slot = launcher.slots[number];
  if (pods_[index]->gone) return;
  if (launcher.ending()) {
    slot.closed = true;
    return CheckLauncherEnd(index);
  }
  StartProcess(index, number, ++slot.incarnation);
  slot.pid = static_cast<pid_t>(launcher.children.back().worker->pid);
}

void World::StartStandby(int index) {
  Launcher& launcher = pods_[index]->launcher;
  if (!launcher.ending() && !pods_[index]->gone)
    StartProcess(index, -1, launcher.standby.NextIncarnation());
}

WorkerPtr World::FindProcess(int index, int slot, std::uint64_t incarnation) const {
  for (const Child& child : pods_[index]->launcher.children) {
    if (child.slot == slot && child.incarnation == incarnation) return child.worker;
  }
  return nullptr;
}

// The launcher reaps a process.
void World::OnExit(const WorkerPtr& worker, int code, int signal) {
  const int index = worker->pod;
  Launcher& launcher = pods_[index]->launcher;
  auto it = std::find_if(launcher.children.begin(), launcher.children.end(),
                         [&](const Child& child) { return child.worker == worker; });
  if (pods_[index]->gone || it == launcher.children.end()) return;
  const Child child = *it;
  launcher.children.erase(it);
  const launcher::ExitDecision decision = launcher::DecideOnExit({}, code);
  const bool by_us = launcher.ending();
  const bool standby = child.slot < 0;
  const bool restarts =
      !by_us &&
      (standby || (code != 0 && decision.action == failure_policy::Action::kRestartWorker));
  const bool dropped = code == failure_policy::kDroppedExitCode;
  LauncherSend(index, {{"t", "exited"},
                       {"slot", child.slot},
                       {"incarnation", child.incarnation},
                       {"pid", worker->pid},
                       {"standby", standby},
                       {"exitCode", code},
                       {"signal", signal},
                       {"restarting", restarts},
                       {"byUs", by_us || (!standby && (dropped || child.ended_by_us))},
                       {"atUs", Local(*pods_[index])},
                       {"message", ""}});
  if (standby) {
    OnStandbyExit(index, child);
  } else {
    launcher.slots[child.slot].pid = 0;
    OnWorkerExit(index, child, code, decision);
  }
  CheckLauncherEnd(index);
  LauncherSleeps(index);
}

void World::OnStandbyExit(int index, const Child& child) {
  Launcher& launcher = pods_[index]->launcher;
  if (!launcher.ending()) launcher.standby.Died(LauncherNow() - child.began, LauncherNow());
}

void World::OnWorkerExit(int index, const Child& child, int code,
                         const launcher::ExitDecision& decision) {
  Launcher& launcher = pods_[index]->launcher;
  launcher::Slot& slot = launcher.slots[child.slot];
  if (launcher.ending()) {
    slot.closed = true;
    if (!launcher.shutdown.stopping() && code != 0) launcher.shutdown.SetExitCode(code);
    return;
  }
  if (code == 0) {
    launcher.slots.ExitedWell(child.slot, LauncherNow());
  } else if (decision.action == failure_policy::Action::kRestartWorker) {
    Restart(index, child);
  } else {
    StopAll(index, code, kFailureGrace);
  }
}

void World::Restart(int index, const Child& child) {
  launcher::Slot& slot = pods_[index]->launcher.slots[child.slot];
  const auto delay = slot.backoff.AfterDeath(LauncherNow() - child.began);
  if (PromoteStandby(index, child.slot)) return;
  if (delay.count() == 0) return StartWorker(index, child.slot);
  slot.restart_at = LauncherNow() + delay;
}

bool World::PromoteStandby(int index, int slot) {
  Launcher& launcher = pods_[index]->launcher;
  for (Child& child : launcher.children) {
    if (child.slot >= 0 || child.worker->stopped_until > time_.now()) continue;
    child.standby_incarnation = child.incarnation;
    child.slot = slot;
    child.incarnation = ++launcher.slots[slot].incarnation;
    child.began = LauncherNow();
    child.began_local = PodNow(index);
    launcher.slots[slot].pid = static_cast<pid_t>(child.worker->pid);
    ++coverage_.promotions;
    LauncherSend(index, {{"t", "promoted"},
                         {"slot", slot},
                         {"incarnation", child.incarnation},
                         {"pid", child.worker->pid}});
    Trace([&] { return Name(*child.worker) + " promoted to slot " + std::to_string(slot); });
    launcher.standby.Promoted(LauncherNow());
    LauncherSleeps(index);
    return true;
  }
  return false;
}

// ---- The end

void World::StopAll(int index, int code, Micros grace) {
  Launcher& launcher = pods_[index]->launcher;
  launcher.shutdown.SetExitCode(code);
  const bool begins = launcher.shutdown.Stop(LauncherNow(), std::chrono::milliseconds(grace / kMs));
  if (begins) {
    launcher.standby.Cancel();
    launcher.slots.CloseAll();
    for (const Child& child : std::vector<Child>(launcher.children))
      child.slot < 0 ? Exit(child.worker, 137, 9) : EndSoon(child.worker, 143);
  }
  CheckLauncherEnd(index);
  LauncherSleeps(index);
}

// SIGTERM to the pod: to its launcher's container now, to the sidecar when that has ended; all are
// killed when the grace period is over.
void World::Terminate(int index) {
  Launcher& launcher = pods_[index]->launcher;
  if (launcher.shutdown.terminating()) return;
  const Micros patience = launcher.stream != 0 ? kGrace * 3 / 4 : 0;
  (void)launcher.shutdown.Terminate(LauncherNow(), std::chrono::milliseconds(patience / kMs));
  if (launcher.begun) LauncherSend(index, {{"t", "term"}, {"graceSeconds", kGrace / kSecond}});
  LauncherSleeps(index);
  time_.After(kGrace, [this, index] { KillPod(index, "its grace period is over"); });
}

void World::CheckLauncherEnd(int index) {
  SimPod& pod = *pods_[index];
  Launcher& launcher = pod.launcher;
  const bool over = (launcher.slots.AllClosed() || !launcher.begun) && launcher.children.empty();
  if (!launcher.ending() || !over || std::exchange(launcher.ended, true)) return;
  Trace([&] { return pod.uid + " launcher ends"; });
  pod.exit_code = launcher.shutdown.FinalExitCode();
  if (launcher.stream != 0) CloseByProcess(launcher.stream);
  time_.After(random_.Between(5 * kMs, 300 * kMs), [this, index] {
    SimPod& ended = *pods_[index];
    if (ended.gone) return;
    ended.terminated = true;
    if (ended.agent == nullptr) return KillPod(index, "its containers have ended");
    ToAgent(index, ended.life, [](Agent& agent) { agent.Terminate(); });
  });
}

}  // namespace ringmaster::app::sim
