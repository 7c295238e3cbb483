#include "sidecar/app/worker_frames.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"

namespace ringmaster::app {
namespace {

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
  name.began = SteadyTime(std::chrono::microseconds(fields::Integer(frame, "beganUs")));
  return name;
}

job::Rebuild ReadRebuilt(const nlohmann::json& frame) {
  return {.epoch = fields::Unsigned(frame, "epoch"),
          .seconds = job::PhaseSecondsFromJson(fields::Member(frame, "seconds")),
          .steps_resumed = fields::Unsigned(frame, "resumed")};
}

}  // namespace ringmaster::app
