// PMI, version 1: what Hydra speaks, the mpiexec of MPICH and of Intel MPI.
#pragma once

#include <memory>

#include "collectives/process_manager/launched_process.h"
#include "ringmaster/status.h"

namespace ringmaster::process_manager {

Status OpenPmi1(const Launch& launch, std::unique_ptr<ProcessManager>* out);

}  // namespace ringmaster::process_manager
