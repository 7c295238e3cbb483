// Frames of the launcher that tell the sidecar of processes (docs/contracts.md, section 2).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sidecar/launcher/children.h"
#include "sidecar/launcher/clock.h"

namespace ringmaster::launcher {

// `slot` below 0: a standby.
nlohmann::json StartedFrame(int slot, uint64_t incarnation, pid_t pid, TimePoint began);
// `halted` or `continued`: a signal has stopped it, or lets it go on.
nlohmann::json HaltFrame(const Child& child);
nlohmann::json ExitedFrame(const ChildExit& exit, bool restarting, bool by_us,
                           const std::string& message);

// What the sidecar is told of the end of a process whose collectives are not ours.
struct ForeignExit {
  bool restarting = false;  // the slot gets another process or worker
  bool by_us = false;       // it is no failure of the process
  bool stays = true;        // the worker of the slot, which is the stand-in, is a member still
  std::string message = "";
};
nlohmann::json ForeignExitedFrame(const ChildExit& exit, const ForeignExit& how);

}  // namespace ringmaster::launcher
