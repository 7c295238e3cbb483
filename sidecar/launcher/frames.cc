#include "sidecar/launcher/frames.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "common/job/worker_exit.h"

namespace ringmaster::launcher {

using nlohmann::json;

namespace {

// Containers of one pod share the kernel's clock, so the sidecar can compare.
int64_t MonotonicUs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace

json StartedFrame(int slot, uint64_t incarnation, pid_t pid) {
  return {{"t", "started"},
          {"slot", slot},
          {"incarnation", incarnation},
          {"pid", pid},
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
                               .at_us = MonotonicUs()});
  frame["t"] = "exited";
  frame["pid"] = exit.pid;
  frame["message"] = message;
  return frame;
}

}  // namespace ringmaster::launcher
