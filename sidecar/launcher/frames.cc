#include "sidecar/launcher/frames.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "common/job/worker_exit.h"

namespace ringmaster::launcher {

using nlohmann::json;

json StartedFrame(int slot, uint64_t incarnation, pid_t pid, TimePoint began) {
  return {{"t", "started"},
          {"slot", slot},
          {"incarnation", incarnation},
          {"pid", pid},
          {"beganUs", MonotonicUs(began)},
          {"standby", slot < 0}};
}

json HaltFrame(const Child& child) {
  return {{"t", child.stopped ? "halted" : "continued"},
          {"slot", child.slot},
          {"incarnation", child.incarnation},
          {"standby", child.standby()}};
}

json ExitedFrame(const ChildExit& exit, bool restarting, bool by_us, const std::string& message) {
  json frame = job::FrameJson({.slot = exit.child.slot,
                               .exit_code = exit.exit_code,
                               .restarting = restarting,
                               .by_us = by_us,
                               .incarnation = exit.child.incarnation,
                               .signal = exit.signal,
                               .standby = exit.child.standby(),
                               .at_us = MonotonicUs(std::chrono::steady_clock::now())});
  frame["t"] = "exited";
  frame["pid"] = exit.pid;
  frame["message"] = message;
  return frame;
}

json ForeignExitedFrame(const ChildExit& exit, const ForeignExit& how) {
  json frame = ExitedFrame(exit, how.restarting, how.by_us, how.message);
  frame["stays"] = how.stays;
  return frame;
}

}  // namespace ringmaster::launcher
