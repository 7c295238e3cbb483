#include "sidecar/app/worker_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/fields/fields.h"
#include "common/logging/log.h"
#include "common/worker_link/worker_frames.h"
#include "sidecar/app/process_name.h"

namespace ringmaster::app {

using nlohmann::json;

namespace {

void NoteLibrary(const std::string& version, const std::string& own, WorkerProcess* worker) {
  if (version == worker->library) return;
  worker->library = version;
  if (version == own) return;
  logging::Warn("a worker's library is of another version slot={} library={} sidecar={}",
                worker->slot(), logging::Value(version), own);
}

}  // namespace

WorkerTable::WorkerTable(const WorkerTableOptions& options, WorkerTableCallbacks callbacks)
    : options_(options),
      callbacks_(std::move(callbacks)),
      processes_(options.slots),
      launcher_(callbacks_.send),
      orders_(options, &callbacks_, &processes_, &launcher_),
      watch_(&options_, &processes_, &launcher_),
      timelines_(callbacks_.send),
      gpus_(options.slots) {}

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
    const bool news =
        std::count(promoted.begin(), promoted.end(), worker.identity.standby_incarnation()) > 0;
    if (news) orders_.Promoted(worker);
  }
  callbacks_.changed();
  orders_.CheckAnswers();
}

void WorkerTable::OnWorkerHello(uint64_t connection, const json& frame, int peer_pid,
                                SteadyTime now) {
  const worker_link::WorkerHello hello = worker_link::ReadWorkerHello(frame);
  if (!hello.standby && (hello.slot < 0 || hello.slot >= options_.slots)) {
    callbacks_.refuse(connection, "slot is " + std::to_string(hello.slot) + ", 0 to " +
                                      std::to_string(options_.slots - 1) + " are allowed");
    return;
  }
  const uint64_t newer =
      hello.standby ? 0 : processes_.NewerIncarnation(hello.slot, hello.incarnation);
  if (newer != 0) {
    callbacks_.refuse(connection, "slot " + std::to_string(hello.slot) +
                                      " belongs to incarnation " + std::to_string(newer) + " now");
    return;
  }
  // The launcher reports it by another socket, maybe later.
  WorkerProcess* worker = processes_.Find(hello.standby, hello.slot, hello.incarnation);
  if (worker == nullptr) worker = processes_.Add(hello.slot, hello.incarnation);
  worker->connection.Open(connection, hello.standby, hello.keeps_timeline);
  worker->liveness.ConnectionOpened(now);
  worker->identity.NamedByItself(hello.pid, peer_pid);
  worker->tcp = hello.tcp;
  worker->shm = hello.shm;
  NoteLibrary(hello.library.value_or(""), options_.version, worker);
  if (hello.epoch == 0 && view().HasBuilt(*worker)) launcher_.KillFenced(*worker);
  const bool given_counts = !options_.without.Has(GlueClause::kGivenCounts);
  worker->views.Reconnected(hello.epoch, given_counts ? hello.given : 0);
  worker->stage.Reconnected(view().Lists(*worker));
  orders_.Welcome(worker);
  callbacks_.changed();
}

void WorkerTable::OnFrame(uint64_t connection, const json& frame, SteadyTime now) {
  if (launcher_.Is(connection)) return OnLauncherFrame(frame, now);
  WorkerProcess* worker = processes_.ByConnection(connection);
  if (worker == nullptr) return;
  worker->liveness.Heard(now);
  OnWorkerFrame(worker, frame);
}

void WorkerTable::OnClosed(uint64_t connection, SteadyTime now) {
  if (launcher_.Is(connection)) return launcher_.Closed(now);
  timelines_.OnClosed(connection);
  WorkerProcess* worker = processes_.ByConnection(connection);
  if (worker == nullptr) return;
  worker->connection.Close();
  worker->liveness.ConnectionClosed(now);
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
  const Epoch holds = fields::Unsigned(frame, "holds");  // in a `ping` or a `stopped`
  if (type == "ping") {
    worker->figures.TakePing(frame);
    if (const json& gpu = fields::Member(frame, "gpu"); gpu.is_object())
      gpus_.Take(worker->slot(), worker->identity.incarnation(), job::GpuHealthFromJson(gpu));
    callbacks_.send(worker->connection.id(), worker_link::PongFrame(fields::Integer(frame, "n")));
    // `rebuilt` says it sooner, but may be lost with a sidecar, and joiners don't send it.
    const Epoch ran = fields::Unsigned(frame, "ran");
    if (ran > ran_) callbacks_.ran(ran_ = ran);
    if (worker->views.Holds(holds)) callbacks_.changed();
  } else if (type == "enter") {
    OnEnter(worker, frame);
  } else if (type == "stopped") {
    worker->views.Stopped(epoch);
    // The membership has to know who has the job's state before it hears that all have stopped.
    if (worker->views.Holds(holds)) callbacks_.changed();
    orders_.CheckAnswers();
  } else if (type == "installed") {
    worker->views.Installed(epoch);
  } else if (type == "boundary") {
    worker->views.AtBoundary(epoch);
    worker->figures.AtStep(fields::Unsigned(frame, "step"));
    orders_.CheckAnswers();
  } else if (type == "suspect" || type == "broken") {
    const worker_link::ViewTrouble trouble = worker_link::ReadViewTrouble(frame);
    (trouble.broken ? callbacks_.broken : callbacks_.suspects)(epoch, trouble.rank, trouble.reason);
  } else if (type == "rebuilt") {
    worker->figures.AtStep(fields::Unsigned(frame, "step"));
    callbacks_.rebuilt(worker_link::ReadRebuilt(frame));
  } else if (type == "timeline") {
    timelines_.OnPiece(*worker, frame);
  } else if (type == "resting") {
    worker->stage.Rests(true);
  } else if (type == "woken") {
    worker->stage.Rests(false);
  } else if (type == "finished") {
    worker->stage.Finished();
    // One that rests may not have heard yet of the newest view.
    callbacks_.finished(worker->stage.resting() ? std::max(epoch, view().epoch()) : epoch);
  } else if (type == "bye") {
    worker->stage.SaidBye();
  }
}

// After a shutdown that all ranks have agreed on a process may end, also where nothing of the
// library runs any more as it does: the job is over then, because not all can begin again.
void WorkerTable::CheckRest(const job::WorkerExit& exit) {
  if (exit.exit_code != 0 || exit.signal != 0) return;
  WorkerProcess* worker = processes_.Find(exit.standby, exit.slot, exit.incarnation);
  if (worker == nullptr || !worker->stage.resting() || worker->stage.finished() ||
      !view().Lists(*worker))
    return;
  worker->stage.Finished();
  callbacks_.finished(view().epoch());
}

void WorkerTable::OnEnter(WorkerProcess* worker, const json& frame) {
  if (view().HasBuilt(*worker)) return launcher_.KillFenced(*worker);
  if (worker->stage.Enter(worker_link::TakesState(frame))) callbacks_.changed();
}

void WorkerTable::Tick(SteadyTime now) {
  orders_.Tick(now);
  const std::vector<WorkerProcess> all_dead = watch_.Tick(now, view());
  if (all_dead.empty()) return;
  for (const WorkerProcess& dead : all_dead) {
    if (dead.connection.open()) callbacks_.drop(dead.connection.id());
    // It may only be stopped; fenced it is of no use, and a new process is.
    const bool ended = dead.liveness.closed_at() && dead.identity.HasEnded();
    if (!ended && !dead.stage.over()) launcher_.Kill(dead, "silent for longer than the fence");
  }
  callbacks_.changed();
  orders_.CheckAnswers();
}

}  // namespace ringmaster::app
