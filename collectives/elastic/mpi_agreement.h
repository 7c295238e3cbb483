// Whether all ranks can use MPI for their collectives: each says through the launcher what it has
// loaded. So where one rank can't, all hear it, and none waits for it in MPI.
//
// Thread rule: one thread.
#pragma once

#include <string>

#include "collectives/process_manager/launched_process.h"
#include "ringmaster/status.h"

namespace ringmaster::elastic {

// `step`: what the ranks have tried; `own`: whether this rank can go on after it; `name`: its MPI.
// All ranks call it. Returns `own` if that is an error. RM_ERR_UNAVAILABLE names a rank that can't
// go on, and why, or ranks with different MPIs.
Status AgreeOnMpi(process_manager::ProcessManager* manager, const std::string& step,
                  const Status& own, const std::string& name,
                  process_manager::Clock::time_point deadline);

}  // namespace ringmaster::elastic
