#include "sidecar/app/worker_table.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/fields/fields.h"
#include "common/logging/log.h"
#include "sidecar/app/worker_frames.h"

namespace ringmaster::app {

using nlohmann::json;

WorkerTable::WorkerTable(const WorkerTableOptions& options, WorkerTableCallbacks callbacks)
    : options_(options),
      callbacks_(std::move(callbacks)),
      processes_(options.slots),
      launcher_(callbacks_.send),
      orders_(options, &callbacks_, &processes_, &launcher_),
      watch_(&options_, &processes_, &launcher_),
      timelines_(callbacks_.send) {}

// ---- From the link

void WorkerTable::OnHello(uint64_t connection, bool launcher, const json& hello, int peer_pid,
                          SteadyTime now) {
  if (launcher) {
    OnLauncherHello(connection, hello, now);
  } else {
    OnWorkerHello(connection, hello, peer_pid, now);
  }
}

void WorkerTable::OnLauncherHello(uint64_t connection, const json& hello, SteadyTime now) {
  const int64_t slots = fields::Integer(hello, "slots");
  if (slots != options_.slots) {
    callbacks_.refuse(connection, "launcher has " + std::to_string(slots) +
                                      " slots, this pod has " + std::to_string(options_.slots));
    return;
  }
  const json& running = fields::Member(hello, "running");
  launcher_.Connected(connection);
  if (!running.is_array()) return;
  std::vector<ProcessName> names;
  for (const json& process : running) names.push_back(ReadProcessName(process));
  const std::vector<uint64_t> promoted = processes_.KeepOnly(names);
  for (const ProcessName& name : names) watch_.OnHalt(name, name.stopped, now);
  for (const WorkerProcess& worker : processes_.all()) {
    const bool news = std::count(promoted.begin(), promoted.end(), worker.standby_incarnation) > 0;
    if (news) orders_.Promoted(worker);
  }
  callbacks_.changed();
  orders_.CheckAnswers();
}

void WorkerTable::NoteLibrary(const std::string& version, WorkerProcess* worker) const {
  if (version == worker->library) return;
  worker->library = version;
  if (version == options_.version) return;
  spdlog::warn("a worker's library is of another version slot={} library={} sidecar={}",
               worker->slot, logging::Value(version), options_.version);
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
  worker->resting = false;  // one that rests says so again, after the welcome
  worker->keeps_timeline = fields::Flag(hello, "timeline");
  worker->heard = now;
  worker->own_pid = name.pid;
  worker->tcp = fields::Text(hello, "tcp");
  worker->shm = fields::Text(hello, "shm");
  NoteLibrary(fields::Text(hello, "library"), worker);
  if (peer_pid != 0 && peer_pid == name.pid) {
    worker->pid = peer_pid;
    worker->same_pids = true;
  }
  // A worker that has a view is connecting again; what it was told before, it was told by this
  // connection's forerunner.
  const Epoch epoch = fields::Unsigned(hello, "epoch");
  if (epoch == 0 && HasGivenUp(*worker)) Replace(*worker);
  worker->installed = epoch;
  worker->sent = epoch;
  if (!options_.without.Has(GlueClause::kGivenCounts))
    worker->sent = std::max(epoch, fields::Unsigned(hello, "given"));
  worker->stop_sent = 0;
  // One that a newer view has left out says `enter` when it has heard of that.
  worker->ready = worker->ready || view().Lists(*worker);
  orders_.Welcome(worker);
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
  timelines_.OnClosed(connection);
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
    CheckRest(exit);
    callbacks_.exited(exit);
    if (fields::Flag(frame, "stays")) return;  // its launcher is the member, not the process
    if (!processes_.Exited(exit)) return;      // its closed socket was enough
    callbacks_.changed();
    orders_.CheckAnswers();
  } else if (type == "promoted") {
    const ProcessName name = ReadProcessName(frame);
    const WorkerProcess* worker = processes_.Promote(
        static_cast<int>(fields::Integer(frame, "slot", -1)), name.incarnation, name.pid);
    if (worker == nullptr) return;
    orders_.Promoted(*worker);
    callbacks_.changed();
  } else if (type == "halted" || type == "continued") {
    watch_.OnHalt(ReadProcessName(frame), type == "halted", now);
  } else if (type == "state") {
    watch_.OnState(frame, now);
  } else if (type == "term") {
    callbacks_.terminate();
  }
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
    if (ReadHolds(frame, worker)) callbacks_.changed();
  } else if (type == "enter") {
    OnEnter(worker, frame);
  } else if (type == "stopped") {
    worker->stopped = std::max(worker->stopped, epoch);
    // Before what waits for the stop looks who has the state.
    if (ReadHolds(frame, worker)) callbacks_.changed();
    orders_.CheckAnswers();
  } else if (type == "installed") {
    worker->installed = std::max(worker->installed, epoch);
  } else if (type == "boundary") {
    worker->boundary = std::max(worker->boundary, epoch);
    worker->step = fields::Unsigned(frame, "step");
    orders_.CheckAnswers();
  } else if (type == "suspect") {
    callbacks_.suspects(epoch, static_cast<int>(fields::Integer(frame, "rank", -1)),
                        fields::Text(frame, "reason"));
  } else if (type == "broken") {
    callbacks_.broken(epoch, static_cast<int>(fields::Integer(frame, "rank", -1)),
                      fields::Text(frame, "reason"));
  } else if (type == "rebuilt") {
    worker->step = fields::Unsigned(frame, "step");
    callbacks_.rebuilt(ReadRebuilt(frame));
  } else if (type == "timeline") {
    timelines_.OnPiece(*worker, frame);
  } else if (type == "resting") {
    worker->resting = true;
  } else if (type == "woken") {
    worker->resting = false;
  } else if (type == "finished") {
    worker->finished = true;
    // One that rests may not have heard yet of the newest view.
    callbacks_.finished(worker->resting ? std::max(epoch, view().epoch()) : epoch);
  } else if (type == "bye") {
    worker->left = true;
  }
}

// After a shutdown that all ranks have agreed on a process may end, also where nothing of the
// library runs any more as it does: the job is over then, because not all can begin again.
void WorkerTable::CheckRest(const job::WorkerExit& exit) {
  if (exit.exit_code != 0 || exit.signal != 0) return;
  WorkerProcess* worker = processes_.Find(exit.standby, exit.slot, exit.incarnation);
  if (worker == nullptr || !worker->resting || worker->finished || !view().Lists(*worker)) return;
  worker->finished = true;
  callbacks_.finished(view().epoch());
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

void WorkerTable::Tick(SteadyTime now) {
  const std::vector<WorkerProcess> all_dead = watch_.Tick(now, view());
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
  orders_.CheckAnswers();
}

}  // namespace ringmaster::app
