#include "sidecar/app/worker_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/fields/fields.h"
#include "sidecar/app/worker_frames.h"

namespace ringmaster::app {

using nlohmann::json;

namespace {

// How long a worker may say nothing before the launcher is asked what it does: three pings.
constexpr int kPingsMissed = 3;
// A longer time between two ticks, which come four times a second, is this process's own
// standstill.
constexpr std::chrono::milliseconds kLongTick{1000};
// Half a second without a launcher is its death, and its workers', so for that less is long, too.
constexpr std::chrono::milliseconds kLongTickForLauncher{350};

}  // namespace

WorkerTable::WorkerTable(const WorkerTableOptions& options, WorkerTableCallbacks callbacks)
    : options_(options),
      callbacks_(std::move(callbacks)),
      processes_(options.slots),
      launcher_(callbacks_.send),
      notifier_(options, callbacks_.send, callbacks_.changed) {}

// ---- From the link

void WorkerTable::OnHello(uint64_t connection, bool launcher, const json& hello, int peer_pid,
                          SteadyTime now) {
  if (launcher) {
    OnLauncherHello(connection, hello);
  } else {
    OnWorkerHello(connection, hello, peer_pid, now);
  }
}

void WorkerTable::OnLauncherHello(uint64_t connection, const json& hello) {
  const int64_t slots = fields::Integer(hello, "slots");
  if (slots != options_.slots) {
    callbacks_.refuse(connection, "launcher has " + std::to_string(slots) +
                                      " slots, this pod has " + std::to_string(options_.slots));
    return;
  }
  const json& running = fields::Member(hello, "running");
  launcher_.Connected(connection, running.is_array() && !running.empty());
  if (!running.is_array()) return;
  std::vector<ProcessName> names;
  for (const json& process : running) names.push_back(ReadProcessName(process));
  const std::vector<uint64_t> promoted = processes_.KeepOnly(names);
  for (const WorkerProcess& worker : processes_.all()) {
    const bool news = std::count(promoted.begin(), promoted.end(), worker.standby_incarnation) > 0;
    if (news && worker.welcomed) notifier_.SendPromoted(worker);
  }
  callbacks_.changed();
  CheckStopped();
  CheckBoundary();
}

void WorkerTable::OnWorkerHello(uint64_t connection, const json& hello, int peer_pid,
                                SteadyTime now) {
  const ProcessName name = ReadProcessName(hello);
  if (!name.standby && (name.slot < 0 || name.slot >= options_.slots)) {
    callbacks_.refuse(connection, "slot is " + std::to_string(name.slot) + ", 0 to " +
                                      std::to_string(options_.slots - 1) + " are allowed");
    return;
  }
  const uint64_t newer =
      name.standby ? 0 : processes_.NewerIncarnation(name.slot, name.incarnation);
  if (newer != 0) {
    callbacks_.refuse(connection, "slot " + std::to_string(name.slot) + " belongs to incarnation " +
                                      std::to_string(newer) + " now");
    return;
  }
  // The launcher reports it by another socket, maybe later.
  WorkerProcess* worker = processes_.Find(name.standby, name.slot, name.incarnation);
  if (worker == nullptr) worker = processes_.Add(name.slot, name.incarnation);
  worker->connection = connection;
  worker->greeted = true;
  worker->says_standby = name.standby;
  worker->welcomed = false;
  worker->closed_at.reset();
  worker->unheard = false;
  worker->heard = now;
  worker->own_pid = name.pid;
  worker->tcp = fields::Text(hello, "tcp");
  worker->shm = fields::Text(hello, "shm");
  if (peer_pid != 0 && peer_pid == name.pid) {
    worker->pid = peer_pid;
    worker->same_pids = true;
  }
  // A worker that has a view is connecting again; what it was told before, it was told by this
  // connection's forerunner.
  const Epoch epoch = fields::Unsigned(hello, "epoch");
  if (epoch == 0 && HasGivenUp(*worker)) Replace(*worker);
  worker->installed = epoch;
  worker->sent = std::max(epoch, fields::Unsigned(hello, "given"));
  worker->stop_sent = 0;
  // One that a newer view has left out says `enter` when it has heard of that.
  worker->ready = worker->ready || view().Lists(*worker);
  notifier_.Welcome(worker, barrier_);
  callbacks_.changed();
}

void WorkerTable::OnFrame(uint64_t connection, const json& frame, SteadyTime now) {
  if (launcher_.Is(connection)) return OnLauncherFrame(frame, now);
  WorkerProcess* worker = processes_.ByConnection(connection);
  if (worker == nullptr) return;
  worker->heard = now;
  OnWorkerFrame(worker, frame);
}

void WorkerTable::OnClosed(uint64_t connection, SteadyTime now) {
  if (launcher_.Is(connection)) return launcher_.Closed(now);
  WorkerProcess* worker = processes_.ByConnection(connection);
  if (worker == nullptr) return;
  worker->connection = 0;
  worker->welcomed = false;
  worker->closed_at = now;
  Tick(now);
}

void WorkerTable::OnLauncherFrame(const json& frame, SteadyTime now) {
  const std::string type = fields::Text(frame, "t");
  if (type == "started") {
    if (processes_.Started(ReadProcessName(frame)) != nullptr) callbacks_.changed();
  } else if (type == "exited") {
    const job::WorkerExit exit = job::WorkerExitFromJson(frame);
    callbacks_.exited(exit);
    if (fields::Flag(frame, "stays")) return;  // its launcher is the member, not the process
    if (!processes_.Exited(exit)) return;      // its closed socket was enough
    callbacks_.changed();
    CheckStopped();
    CheckBoundary();
  } else if (type == "promoted") {
    const ProcessName name = ReadProcessName(frame);
    const WorkerProcess* worker = processes_.Promote(
        static_cast<int>(fields::Integer(frame, "slot", -1)), name.incarnation, name.pid);
    if (worker == nullptr) return;
    if (worker->welcomed) notifier_.SendPromoted(*worker);
    callbacks_.changed();
  } else if (type == "state") {
    OnState(frame, now);
  } else if (type == "term") {
    callbacks_.terminate();
  }
}

// The others wait for it in the ring, and can't tell it from one that computes for long. A debugger
// has its reasons; only the fence ends its patience.
void WorkerTable::OnState(const json& frame, SteadyTime now) {
  if (fields::Text(frame, "state") != "T") return;
  const WorkerProcess* worker =
      processes_.Find(false, static_cast<int>(fields::Integer(frame, "slot", -1)),
                      fields::Unsigned(frame, "incarnation"));
  if (worker == nullptr || now - worker->heard < options_.stopped_for) return;
  const auto silent = std::chrono::duration_cast<std::chrono::milliseconds>(now - worker->heard);
  launcher_.Kill(*worker, "stopped by a signal, silent for " + std::to_string(silent.count()) +
                              " ms (elasticPolicy.stoppedWorkerSeconds)");
}

void WorkerTable::OnWorkerFrame(WorkerProcess* worker, const json& frame) {
  const std::string type = fields::Text(frame, "t");
  const Epoch epoch = fields::Unsigned(frame, "epoch");
  if (type == "ping") {
    ReadProgress(frame, worker);
    callbacks_.send(worker->connection, {{"t", "pong"}, {"n", fields::Integer(frame, "n")}});
    // `rebuilt` says it sooner, but may be lost with a sidecar, and joiners don't send it.
    const Epoch ran = fields::Unsigned(frame, "ran");
    if (ran > ran_) callbacks_.ran(ran_ = ran);
  } else if (type == "enter") {
    OnEnter(worker, frame);
  } else if (type == "stopped") {
    worker->stopped = std::max(worker->stopped, epoch);
    CheckStopped();
  } else if (type == "installed") {
    worker->installed = std::max(worker->installed, epoch);
  } else if (type == "boundary") {
    worker->boundary = std::max(worker->boundary, epoch);
    worker->step = fields::Unsigned(frame, "step");
    CheckBoundary();
  } else if (type == "suspect") {
    callbacks_.suspects(epoch, static_cast<int>(fields::Integer(frame, "rank", -1)),
                        fields::Text(frame, "reason"));
  } else if (type == "broken") {
    callbacks_.broken(epoch, static_cast<int>(fields::Integer(frame, "rank", -1)),
                      fields::Text(frame, "reason"));
  } else if (type == "rebuilt") {
    worker->step = fields::Unsigned(frame, "step");
    callbacks_.rebuilt(ReadRebuilt(frame));
  } else if (type == "finished") {
    worker->finished = true;
    callbacks_.finished(epoch);
  } else if (type == "bye") {
    worker->left = true;
  }
}

void WorkerTable::OnEnter(WorkerProcess* worker, const json& frame) {
  if (HasGivenUp(*worker)) return Replace(*worker);
  worker->loads = fields::Flag(frame, "state", true);
  if (std::exchange(worker->ready, true)) return;
  callbacks_.changed();
}

// Only a worker that its fence has stopped asks to be let in though it had built the newest view.
bool WorkerTable::HasGivenUp(const WorkerProcess& worker) const {
  return view().Lists(worker) && worker.installed >= view().epoch();
}

// The others may wait for its rank: a new process joins, where this one could only be waited for.
void WorkerTable::Replace(const WorkerProcess& worker) {
  launcher_.Kill(worker, "fenced: this sidecar did not answer it for long", /*by_us=*/true);
}

// What was said meanwhile has yet to be read.
void WorkerTable::ForgiveOwnSleep(SteadyTime now) {
  const auto slept = now - ticked_.value_or(now);
  ticked_ = now;
  if (slept >= kLongTickForLauncher) launcher_.ForgiveSleep(slept);
  if (slept < kLongTick) return;
  for (WorkerProcess& worker : processes_.all()) {
    worker.heard += slept;
    worker.looked += slept;
    if (worker.closed_at) *worker.closed_at += slept;
  }
}

void WorkerTable::LookAfterSilent(SteadyTime now) {
  for (WorkerProcess& worker : processes_.all()) {
    // One that is in no view may connect when it likes.
    if ((worker.connection == 0 && !view().Lists(worker)) || worker.standby()) continue;
    if (now - worker.heard < kPingsMissed * options_.ping) continue;
    if (now - worker.looked < options_.ping) continue;
    worker.looked = now;
    launcher_.Look(worker);
  }
}

void WorkerTable::Tick(SteadyTime now) {
  ForgiveOwnSleep(now);
  LookAfterSilent(now);
  const std::vector<WorkerProcess> all_dead =
      processes_.TakeDead(now, options_.fence, launcher_.lost_at());
  if (all_dead.empty()) return;
  for (const WorkerProcess& dead : all_dead) {
    if (dead.connection != 0)
      callbacks_.refuse(dead.connection, "no ping for longer than the fence");
    // It may only be stopped; fenced it is of no use, and a new process is.
    const bool ended = dead.closed_at && dead.same_pids && ProcessEnded(dead.pid);
    if (!ended && !dead.left && !dead.finished)
      launcher_.Kill(dead, "silent for longer than the fence");
  }
  callbacks_.changed();
  CheckStopped();
  CheckBoundary();
}

// ---- What the membership wants

void WorkerTable::Restore(ViewPtr view, SteadyTime now) {
  notifier_.Restore(std::move(view));
  ExpectWorkers(now);
}

void WorkerTable::ExpectWorkers(SteadyTime now) {
  for (const membership::RankEntry& rank : this->view().view()->ranks) {
    if (this->view().IsOwn(rank)) processes_.AddUnheard(rank.slot, rank.incarnation, now);
  }
}

void WorkerTable::Stop(Epoch epoch) {
  barrier_.Stop(epoch);
  for (WorkerProcess& worker : processes_.all()) {
    if (!worker.standby() && worker.welcomed) notifier_.SendStop(&worker, epoch);
  }
  CheckStopped();
}

void WorkerTable::CheckStopped() {
  if (auto epoch = barrier_.TakeStopped(processes_.all(), view())) callbacks_.stopped(*epoch);
}

void WorkerTable::Arm(Epoch epoch) {
  if (view().view() == nullptr || view().epoch() != epoch) return;
  barrier_.Arm(epoch);
  for (const WorkerProcess& worker : processes_.all()) {
    if (worker.welcomed && view().Lists(worker)) notifier_.SendArm(worker, epoch);
  }
  CheckBoundary();
}

void WorkerTable::CheckBoundary() {
  if (auto epoch = barrier_.TakeBoundary(processes_.all(), view())) callbacks_.boundary(*epoch);
}

void WorkerTable::Install(ViewPtr view, SteadyTime now) {
  notifier_.Install(std::move(view));
  // Its workers have been heard by a forerunner of this sidecar, which died before it knew the
  // view.
  if (!launcher_.seen()) ExpectWorkers(now);
  barrier_.Disarm();
  for (WorkerProcess& worker : processes_.all()) {
    if (worker.standby() || worker.connection == 0) continue;
    if (!worker.welcomed) {
      notifier_.Welcome(&worker, barrier_);
    } else {
      notifier_.SendView(&worker);
    }
  }
}

void WorkerTable::SettleWelcome() {
  if (!notifier_.Settle()) return;
  for (WorkerProcess& worker : processes_.all()) {
    if (worker.connection != 0 && !worker.welcomed) notifier_.Welcome(&worker, barrier_);
  }
}

// ---- The end

void WorkerTable::Leave(Epoch epoch, const std::string& reason) {
  notifier_.Leave(epoch, reason);
  launcher_.Finish();
  for (WorkerProcess& worker : processes_.all()) notifier_.SendLeft(&worker, epoch, reason);
}

void WorkerTable::LeaveJoiners(Epoch epoch, const std::string& reason) {
  notifier_.LeaveJoiners(epoch, reason);
  for (WorkerProcess& worker : processes_.all()) {
    if (!view().Lists(worker)) notifier_.SendLeft(&worker, epoch, reason);
  }
}

void WorkerTable::GiveUp(const std::string& message) {
  notifier_.GiveUp(message);
  for (const WorkerProcess& worker : processes_.all()) {
    if (worker.welcomed) notifier_.SendGivenUp(worker);
  }
}

void WorkerTable::KillUsed(const std::string& reason) {
  for (const WorkerProcess& worker : processes_.all()) {
    if (!worker.standby() && worker.installed != 0) launcher_.Kill(worker, reason);
  }
}

}  // namespace ringmaster::app
