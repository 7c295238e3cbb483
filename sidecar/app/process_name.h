// How frames name a worker process of this pod (docs/contracts.md, section 2).
//
// Pure. A peer may send anything: absent fields and wrong types count as empty.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace ringmaster::app {

using SteadyTime = std::chrono::steady_clock::time_point;

struct ProcessName {
  bool standby = false;
  int slot = -1;
  uint64_t incarnation = 0;
  int64_t pid = 0;
  bool stopped = false;              // by a signal
  uint64_t standby_incarnation = 0;  // of a promoted standby, before it was; 0: it was none
  // When the launcher started it or gave it its slot, by the machine's monotonic clock; the epoch:
  // not said.
  SteadyTime began{};
};

// As the launcher names a process in its frames, and in its list of running processes.
ProcessName ReadProcessName(const nlohmann::json& frame);

}  // namespace ringmaster::app
