// PMI, version 1: what Hydra speaks, the mpiexec of MPICH and of Intel MPI.
#pragma once

#include <memory>

#include "collectives/process_manager/process_manager.h"

namespace ringmaster::process_manager {

// Over the socket that PMI_FD names.
Status OpenPmi1(std::unique_ptr<ProcessManager>* out);

}  // namespace ringmaster::process_manager
