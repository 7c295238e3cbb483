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

}  // namespace ringmaster::launcher
