// Reads the frames that the launcher and the workers send (docs/contracts.md, section 2) into
// values.
//
// Pure. A peer may send anything: absent fields and wrong types count as empty.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "common/job/rebuild.h"
#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

// A process as `hello`, `started` and the launcher's list of running processes name it.
struct ProcessName {
  bool standby = false;
  int slot = -1;
  uint64_t incarnation = 0;
  int64_t pid = 0;
  bool stopped = false;              // by a signal
  uint64_t standby_incarnation = 0;  // of a promoted standby, before it was; 0: it was none
};
ProcessName ReadProcessName(const nlohmann::json& frame);

// Of a `rebuilt` frame, which a worker sends when the first operation of a view has completed
// there: epoch, seconds and steps_resumed are set.
job::Rebuild ReadRebuilt(const nlohmann::json& frame);

// The step, the values, the stalls and the times of a `ping`.
void ReadProgress(const nlohmann::json& frame, WorkerProcess* worker);

}  // namespace ringmaster::app
