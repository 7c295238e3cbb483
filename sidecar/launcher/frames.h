// Frames of the launcher that tell the sidecar of processes (docs/contracts.md, section 2).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sidecar/launcher/children.h"

namespace ringmaster::launcher {

// By the machine's monotonic clock. Containers of one pod share it, so the sidecar can compare.
int64_t MonotonicUs(TimePoint at);

// `slot` below 0: a standby.
nlohmann::json StartedFrame(int slot, uint64_t incarnation, pid_t pid, TimePoint began);
// `halted` or `continued`: a signal has stopped it, or lets it go on.
nlohmann::json HaltFrame(const Child& child);
nlohmann::json ExitedFrame(const ChildExit& exit, bool restarting, bool by_us,
                           const std::string& message);

}  // namespace ringmaster::launcher
