#include "common/job/worker_exit.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"

namespace ringmaster::job {

nlohmann::json StatusJson(const WorkerExit& exit) {
  return {{"slot", exit.slot},
          {"incarnation", exit.incarnation},
          {"exitCode", exit.exit_code},
          {"signal", exit.signal},
          {"byUs", exit.by_us}};
}

nlohmann::json FrameJson(const WorkerExit& exit) {
  nlohmann::json json = StatusJson(exit);
  json["standby"] = exit.standby;
  json["restarting"] = exit.restarting;
  if (exit.at_us > 0) json["atUs"] = exit.at_us;
  return json;
}

WorkerExit WorkerExitFromJson(const nlohmann::json& json) {
  WorkerExit exit;
  exit.standby = fields::Flag(json, "standby");
  if (!exit.standby) exit.slot = static_cast<int>(fields::Integer(json, "slot", -1));
  exit.incarnation = fields::Unsigned(json, "incarnation");
  exit.exit_code = static_cast<int>(fields::Integer(json, "exitCode"));
  exit.signal = static_cast<int>(fields::Integer(json, "signal"));
  exit.restarting = fields::Flag(json, "restarting");
  exit.by_us = fields::Flag(json, "byUs");
  exit.at_us = std::max<std::int64_t>(fields::Integer(json, "atUs"), 0);
  return exit;
}

}  // namespace ringmaster::job
