// Whether all ranks can use MPI for their collectives: each says through the launcher what it has
// loaded. So where one rank can't, all hear it, and none waits for it in MPI.
//
// Thread rule: one thread.
#pragma once

#include <string>

#include "collectives/process_manager/launched_process.h"
#include "ringmaster/status.h"

namespace ringmaster::elastic {

// `loaded`: whether this rank has loaded MPI; `name`: which. All ranks call it. RM_ERR_UNAVAILABLE
// names a rank that has none, and why, or ranks with different MPIs.
Status AgreeOnMpi(process_manager::ProcessManager* manager, const Status& loaded,
                  const std::string& name, process_manager::Clock::time_point deadline);

}  // namespace ringmaster::elastic
