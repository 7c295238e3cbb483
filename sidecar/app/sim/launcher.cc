// The simulated launcher of a pod, as sidecar/launcher behaves towards the sidecar.
#include <algorithm>
#include <utility>

#include "common/failure_policy/failure_policy.h"
#include "sidecar/app/sim/world.h"

namespace ringmaster::app::sim {
namespace {

constexpr Micros kFirstBackoff = 50 * kMs, kLastBackoff = 1000 * kMs;
constexpr Micros kGrace = 8 * kSecond;

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
  json running = json::array();
  for (const Child& child : launcher.children) {
    running.push_back({{"slot", child.slot},
                       {"incarnation", child.incarnation},
                       {"pid", child.worker->pid},
                       {"standby", child.slot < 0},
                       {"standbyIncarnation", child.standby_incarnation}});
  }
  SendToSidecar(launcher.stream, {{"t", "hello"},
                                  {"version", 1},
                                  {"role", "launcher"},
                                  {"slots", slots_},
                                  {"standbys", standbys_},
                                  {"running", running}});
  if (launcher.terminating)
    SendToSidecar(launcher.stream, {{"t", "term"}, {"graceSeconds", kGrace / kSecond}});
  for (json& frame : launcher.pending) SendToSidecar(launcher.stream, std::move(frame));
  launcher.pending.clear();
}

void World::LauncherClosed(int index, std::uint64_t stream) {
  Launcher& launcher = pods_[index]->launcher;
  if (launcher.stream != stream) return;
  launcher.stream = 0;
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
  if (type == "finish") {
    if (!finishing_ && !pod.leaving) return Fail(pod.uid + " tells its launcher to finish");
    if (std::exchange(pod.launcher.finishing, true)) return;
    for (const Child& child : std::vector<Child>(pod.launcher.children)) {
      if (child.slot < 0) Exit(child.worker, 137, 9);
    }
    CheckLauncherEnd(index);
  } else if (type == "stop") {
    StopAll(index, frame.value("graceSeconds", 5) * kSecond);
  } else if (type == "kill") {
    ++coverage_.kills;
    const WorkerPtr worker = FindProcess(index, frame["slot"], frame["incarnation"]);
    if (worker != nullptr) Exit(worker, 137, 9);
  } else if (type == "look") {
    const WorkerPtr worker = FindProcess(index, frame["slot"], frame["incarnation"]);
    const char* state = worker == nullptr ? "X" : worker->stopped_until > time_.now() ? "T" : "S";
    LauncherSend(index, {{"t", "state"},
                         {"slot", frame["slot"]},
                         {"incarnation", frame["incarnation"]},
                         {"state", state}});
  }
}

// ---- Processes

void World::StartProcess(int index, int slot) {
  SimPod& pod = *pods_[index];
  Launcher& launcher = pod.launcher;
  if (pod.gone || launcher.ending()) return;
  auto worker = std::make_shared<Worker>();
  worker->pod = index;
  worker->slot = slot;
  worker->standby = slot < 0;
  worker->incarnation = slot < 0 ? ++launcher.standby_incarnation : ++launcher.incarnations[slot];
  worker->pid = next_pid_++;
  launcher.children.push_back({slot, worker->incarnation, 0, worker});
  Trace([&] { return Name(*worker) + " starts"; });
  LauncherSend(index, {{"t", "started"},
                       {"slot", slot},
                       {"incarnation", worker->incarnation},
                       {"pid", worker->pid},
                       {"standby", slot < 0}});
  time_.After(random_.Between(20 * kMs, 300 * kMs), [this, worker] {
    ToWorker(worker, [this, worker] {
      WorkerConnect(worker);
      WorkerBeat(worker);
    });
  });
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
  const bool restarts = !launcher.ending() && code != 0;
  LauncherSend(index, {{"t", "exited"},
                       {"slot", child.slot},
                       {"incarnation", child.incarnation},
                       {"pid", worker->pid},
                       {"standby", child.slot < 0},
                       {"exitCode", code},
                       {"signal", signal},
                       {"restarting", restarts},
                       {"byUs", launcher.ending() || code == failure_policy::kDroppedExitCode},
                       {"atUs", Local(*pods_[index])},
                       {"message", ""}});
  if (restarts) Replace(index, child.slot);
  if (!launcher.ending() && code == 0) {
    time_.After(kSecond, [this, index] { WorkerEndedTooSoon(index); });
  }
  CheckLauncherEnd(index);
}

// A worker has ended in order and nobody has said `finish`: the pod fails. Its sidecar may have
// died before it could.
void World::WorkerEndedTooSoon(int index) {
  SimPod& pod = *pods_[index];
  if (pod.launcher.ending() || pod.gone) return;
  if (healed_at_ >= 0 && time_.now() > healed_at_ + 3 * kSecond)
    Fail(pod.uid + ": a worker has ended in order and its launcher is not told");
  pod.leaving = true;
  pod.leaves_at = time_.now();
  StopAll(index, 3 * kSecond);
}

void World::Replace(int index, int slot) {
  if (slot >= 0 && PromoteStandby(index, slot)) return;
  const Micros delay =
      slot < 0 ? kSecond : random_.Between(0, random_.Chance(200) ? 1500 * kMs : 50 * kMs);
  time_.After(delay, [this, index, slot] { StartProcess(index, slot); });
}

bool World::PromoteStandby(int index, int slot) {
  Launcher& launcher = pods_[index]->launcher;
  for (Child& child : launcher.children) {
    if (child.slot >= 0) continue;
    child.standby_incarnation = child.incarnation;
    child.slot = slot;
    child.incarnation = ++launcher.incarnations[slot];
    ++coverage_.promotions;
    LauncherSend(index, {{"t", "promoted"},
                         {"slot", slot},
                         {"incarnation", child.incarnation},
                         {"pid", child.worker->pid}});
    Trace([&] { return Name(*child.worker) + " promoted to slot " + std::to_string(slot); });
    time_.After(kSecond, [this, index] { StartProcess(index, -1); });
    return true;
  }
  return false;
}

// ---- The end

void World::StopAll(int index, Micros grace) {
  SimPod& pod = *pods_[index];
  if (std::exchange(pod.launcher.stopping, true)) return;
  for (const Child& child : std::vector<Child>(pod.launcher.children)) EndSoon(child.worker, 143);
  time_.After(grace, [this, index] {
    for (const Child& child : std::vector<Child>(pods_[index]->launcher.children))
      Exit(child.worker, 137, 9);
  });
  CheckLauncherEnd(index);
}

// SIGTERM to the pod: to its launcher's container now, to the sidecar when that has ended; all are
// killed when the grace period is over.
void World::Terminate(int index) {
  SimPod& pod = *pods_[index];
  pod.leaving = true;
  pod.leaves_at = time_.now();
  pod.launcher.terminating = true;
  if (pod.launcher.begun) LauncherSend(index, {{"t", "term"}, {"graceSeconds", kGrace / kSecond}});
  const Micros patience = pod.launcher.stream != 0 ? kGrace * 3 / 4 : 0;
  time_.After(patience, [this, index] {
    if (!pods_[index]->gone) StopAll(index, kGrace / 5);
  });
  time_.After(kGrace, [this, index] { KillPod(index, "its grace period is over"); });
}

void World::CheckLauncherEnd(int index) {
  SimPod& pod = *pods_[index];
  Launcher& launcher = pod.launcher;
  if (!launcher.ending() || !launcher.children.empty() || std::exchange(launcher.ended, true))
    return;
  Trace([&] { return pod.uid + " launcher ends"; });
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
