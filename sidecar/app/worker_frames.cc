#include "sidecar/app/worker_frames.h"

#include <nlohmann/json.hpp>

#include "common/fields/fields.h"

namespace ringmaster::app {
namespace {

constexpr size_t kMaxValues = 64;  // that one worker may report

int ReadSlot(const nlohmann::json& frame, bool standby) {
  return standby ? -1 : static_cast<int>(fields::Integer(frame, "slot", -1));
}

}  // namespace

ProcessName ReadProcessName(const nlohmann::json& frame) {
  ProcessName name;
  name.standby = fields::Flag(frame, "standby");
  name.slot = ReadSlot(frame, name.standby);
  name.incarnation = fields::Unsigned(frame, "incarnation");
  name.pid = fields::Integer(frame, "pid");
  name.stopped = fields::Flag(frame, "stopped");
  name.standby_incarnation = fields::Unsigned(frame, "standbyIncarnation");
  return name;
}

job::Rebuild ReadRebuilt(const nlohmann::json& frame) {
  return {.epoch = fields::Unsigned(frame, "epoch"),
          .seconds = job::PhaseSecondsFromJson(fields::Member(frame, "seconds")),
          .steps_resumed = fields::Unsigned(frame, "resumed")};
}

void ReadProgress(const nlohmann::json& frame, WorkerProcess* worker) {
  worker->step = fields::Unsigned(frame, "step");
  worker->stalls = job::StallsFromJson(fields::Member(frame, "stalls"));
  worker->stalls_epoch = fields::Unsigned(frame, "epoch");
  worker->times = job::WorkerTimesFromJson(fields::Member(frame, "times"));
  const nlohmann::json& values = fields::Member(frame, "values");
  if (!values.is_object()) return;
  for (const auto& [name, value] : values.items()) {
    const bool room = worker->values.size() < kMaxValues || worker->values.count(name) > 0;
    if (value.is_number() && room) worker->values[name] = value.get<double>();
  }
}

}  // namespace ringmaster::app
