// PMIx: what Open MPI's mpirun and Slurm's `srun --mpi=pmix` speak.
#pragma once

#include <memory>

#include "collectives/process_manager/launched_process.h"
#include "ringmaster/status.h"

namespace ringmaster::process_manager {

Status OpenPmix(std::unique_ptr<ProcessManager>* out);

}  // namespace ringmaster::process_manager
