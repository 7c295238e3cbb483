// Finds and opens the process manager that has started this process together with others, if
// Ringmaster has not: mpirun, mpiexec, srun.
//
// Thread rule: one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "collectives/process_manager/launched_process.h"
#include "ringmaster/status.h"

namespace ringmaster::process_manager {

// `lookup`: the value of a variable, "" if it is not set. RM_ERR_INVALID names the variable, its
// value and what is allowed.
Status ReadLaunch(const std::function<std::string(const char*)>& lookup, Launch* out);

// RM_ERR_UNAVAILABLE: the launcher can't be reached, and why. RM_ERR_INVALID: there is none.
Status Open(const Launch& launch, std::unique_ptr<ProcessManager>* out);

}  // namespace ringmaster::process_manager
