// The end of a worker process. The launcher sees it and tells its sidecar, which shows it in
// /status and tells the operator.
//
// A plain value that knows no socket and no clock.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ringmaster::job {

struct WorkerExit {
  // No message carries it: the operator adds the name of the pod on whose stream the exit came.
  std::string pod_name;
  int slot = -1;            // -1: a standby, which has none yet
  int exit_code = 0;        // 128+n for signal n
  bool restarting = false;  // the launcher starts it again in place
  bool by_us = false;       // a drain or the job's end asked for it: no fault of the application
  std::uint64_t incarnation = 0;  // of the process that ended, in its slot
  int signal = 0;                 // 0: none
  bool standby = false;
  // When the launcher saw it, by the machine's monotonic clock; 0: not known.
  std::int64_t at_us = 0;
  // The operator adds these two, too. `told_before`: an earlier stream was told of the exit, so
  // that it may be counted already.
  std::string pod_uid;
  bool told_before = false;

  friend bool operator==(const WorkerExit&, const WorkerExit&) = default;
};

// An entry of `exits` in /status (docs/contracts.md, section 5).
nlohmann::json StatusJson(const WorkerExit& exit);
// The fields of an `exited` frame (docs/contracts.md, section 2) that describe the exit. The
// launcher adds the others.
nlohmann::json FrameJson(const WorkerExit& exit);
// Reads both forms. Fields that are missing or of another type keep their defaults.
WorkerExit WorkerExitFromJson(const nlohmann::json& json);

}  // namespace ringmaster::job
