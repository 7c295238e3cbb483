// What the launcher and the workers say.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"
#include "common/worker_link/frame.h"
#include "sidecar/app/worker_table.h"

namespace ringmaster::app {
namespace {

using nlohmann::json;
using worker_link::BoolField;
using worker_link::IntField;
using worker_link::StringField;
using worker_link::UnsignedField;

constexpr size_t kMaxValues = 64;  // that one worker may report

}  // namespace

// ---- The launcher

void WorkerTable::OnLauncherFrame(const json& frame) {
  const std::string type = StringField(frame, "t");
  if (type == "started") {
    if (OnStarted(frame) != nullptr) callbacks_.changed();
  } else if (type == "exited") {
    OnExited(frame);
  } else if (type == "promoted") {
    OnPromoted(frame);
  } else if (type == "term") {
    callbacks_.terminate();
  }
}

WorkerProcess* WorkerTable::OnStarted(const json& frame) {
  const bool standby = BoolField(frame, "standby");
  const int slot = standby ? -1 : static_cast<int>(IntField(frame, "slot", -1));
  const uint64_t incarnation = UnsignedField(frame, "incarnation");
  if (!standby && (slot < 0 || slot >= options_.slots)) return nullptr;
  WorkerProcess* worker = standby ? FindStandby(incarnation) : Find(slot, incarnation);
  if (worker == nullptr) worker = Add(slot, incarnation);
  if (!worker->same_pids) worker->pid = IntField(frame, "pid");
  return worker;
}

void WorkerTable::OnExited(const json& frame) {
  const job::WorkerExit exit = job::WorkerExitFromJson(frame);
  callbacks_.exited(exit);
  WorkerProcess* worker =
      exit.standby ? FindStandby(exit.incarnation) : Find(exit.slot, exit.incarnation);
  if (worker == nullptr) return;  // its socket told before
  Remove(worker);
  callbacks_.changed();
  CheckStopped();
  CheckBoundary();
}

void WorkerTable::OnPromoted(const json& frame) {
  const int64_t pid = IntField(frame, "pid");
  const int slot = static_cast<int>(IntField(frame, "slot", -1));
  auto it = std::find_if(processes_.begin(), processes_.end(), [pid](const WorkerProcess& worker) {
    return worker.standby() && worker.pid == pid;
  });
  // A wrapper script has another pid than the worker that says hello; there is only one standby to
  // mean.
  if (it == processes_.end()) {
    it = std::find_if(processes_.begin(), processes_.end(),
                      [](const WorkerProcess& worker) { return worker.standby(); });
  }
  if (it == processes_.end() || slot < 0 || slot >= options_.slots) return;
  it->slot = slot;
  it->incarnation = UnsignedField(frame, "incarnation");
  if (it->welcomed) SendPromoted(*it);
  callbacks_.changed();
}

// ---- What workers say

void WorkerTable::OnWorkerFrame(WorkerProcess* worker, const json& frame) {
  const std::string type = StringField(frame, "t");
  const Epoch epoch = UnsignedField(frame, "epoch");
  if (type == "ping") {
    OnPing(worker, frame);
  } else if (type == "enter") {
    if (std::exchange(worker->ready, true)) return;
    callbacks_.changed();
  } else if (type == "stopped") {
    worker->stopped = std::max(worker->stopped, epoch);
    CheckStopped();
  } else if (type == "installed") {
    worker->installed = std::max(worker->installed, epoch);
  } else if (type == "boundary") {
    worker->boundary = std::max(worker->boundary, epoch);
    worker->step = UnsignedField(frame, "step");
    CheckBoundary();
  } else if (type == "suspect") {
    callbacks_.suspects(epoch, static_cast<int>(IntField(frame, "rank", -1)),
                        StringField(frame, "reason"));
  } else if (type == "rebuilt") {
    worker->step = UnsignedField(frame, "step");
    callbacks_.rebuilt({.epoch = epoch,
                        .seconds = job::PhaseSecondsFromJson(fields::Member(frame, "seconds")),
                        .steps_resumed = UnsignedField(frame, "resumed")});
  } else if (type == "finished") {
    worker->finished = true;
    callbacks_.finished(epoch);
  } else if (type == "bye") {
    worker->left = true;
  }
}

void WorkerTable::OnPing(WorkerProcess* worker, const json& frame) {
  worker->step = UnsignedField(frame, "step");
  if (auto values = frame.find("values"); values != frame.end() && values->is_object()) {
    for (const auto& [name, value] : values->items()) {
      if (value.is_number() &&
          (worker->values.size() < kMaxValues || worker->values.count(name) > 0)) {
        worker->values[name] = value.get<double>();
      }
    }
  }
  callbacks_.send(worker->connection, {{"t", "pong"}, {"n", IntField(frame, "n")}});
  // `rebuilt` says it sooner, but may be lost with a sidecar, and joiners don't send it.
  const Epoch ran = UnsignedField(frame, "ran");
  if (ran > ran_) callbacks_.ran(ran_ = ran);
}

}  // namespace ringmaster::app
