// The MPI of this machine, through a plug-in that is loaded at run time.
//
// Thread rule: as MpiApi; the rest is pure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/mpi/mpi_api.h"
#include "collectives/process_manager/launched_process.h"
#include "ringmaster/status.h"

namespace ringmaster::mpi {

// The files to try, in order. `named`: the value of RINGMASTER_MPI_LIBRARY, which is the only one
// if it is set. Else it is the plug-in in `folder` for the MPI whose launchers speak `protocol`:
// Open MPI's speak PMIx, MPICH's PMI. Without a launcher: any.
std::vector<std::string> Candidates(const std::string& named, const std::string& folder,
                                    process_manager::Launch::Protocol protocol);
// The folder of this library; "" if it can't be found.
std::string OwnFolder();

// Loads the first of these plug-ins that can be loaded. RM_ERR_UNAVAILABLE: none can, and why; or
// it is no plug-in, or one for another MPI than that which this process has loaded.
Status LoadMpi(const std::vector<std::string>& files, std::unique_ptr<MpiApi>* out);

}  // namespace ringmaster::mpi
