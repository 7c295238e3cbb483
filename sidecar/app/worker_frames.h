// Reads the frames that the launcher and the workers send (docs/contracts.md, section 2) into
// values.
//
// Pure. A peer may send anything: absent fields and wrong types count as empty.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "common/job/rebuild.h"
#include "sidecar/app/process_identity.h"

namespace ringmaster::app {

// As `hello`, `started` and the launcher's list of running processes name a process.
ProcessName ReadProcessName(const nlohmann::json& frame);

// Of a `rebuilt` frame, which a worker sends when the first operation of a view has completed
// there: epoch, seconds and steps_resumed are set.
job::Rebuild ReadRebuilt(const nlohmann::json& frame);

}  // namespace ringmaster::app
