// The end of a worker process, from the launcher that sees it, over its sidecar, to the operator's
// evaluation and to /status.
//
// A plain value that knows no socket and no clock.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ringmaster::job {

struct WorkerExit {
  std::string pod_name;     // no message carries it: the operator adds the name of the pod whose
                            // stream has told it
  int slot = -1;            // -1: a standby, which has none yet
  int exit_code = 0;        // 128+n for signal n
  bool restarting = false;  // in place, by the launcher
  bool by_us = false;       // a drain or the job's end asked for it: no fault of the application
  std::uint64_t incarnation = 0;  // of the process that ended, in its slot
  int signal = 0;                 // 0: none
  bool standby = false;
  // When the launcher saw it, by the machine's monotonic clock; 0: not said.
  std::int64_t at_us = 0;

  friend bool operator==(const WorkerExit&, const WorkerExit&) = default;
};

// An entry of `exits` in /status (docs/contracts.md, section 5).
nlohmann::json StatusJson(const WorkerExit& exit);
// The fields of an `exited` frame (docs/contracts.md, section 2) that are the exit's own: the
// launcher adds what it says beside them.
nlohmann::json FrameJson(const WorkerExit& exit);
// Reads both forms. Fields that are missing or of another type keep their defaults.
WorkerExit WorkerExitFromJson(const nlohmann::json& json);

}  // namespace ringmaster::job
