#include "sidecar/app/process_name.h"

#include <nlohmann/json.hpp>

#include "common/fields/fields.h"

namespace ringmaster::app {

ProcessName ReadProcessName(const nlohmann::json& frame) {
  ProcessName name;
  name.standby = fields::Flag(frame, "standby");
  name.slot = name.standby ? -1 : static_cast<int>(fields::Integer(frame, "slot", -1));
  name.incarnation = fields::Unsigned(frame, "incarnation");
  name.pid = fields::Integer(frame, "pid");
  name.stopped = fields::Flag(frame, "stopped");
  name.standby_incarnation = fields::Unsigned(frame, "standbyIncarnation");
  name.began = SteadyTime(std::chrono::microseconds(fields::Integer(frame, "beganUs")));
  return name;
}

}  // namespace ringmaster::app
