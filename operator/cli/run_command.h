// `ringmaster run`: starts a cluster on this machine, the operator and the jobs, and waits for
// their end.
#pragma once

#include <string>

#include "operator/cli/commands.h"
#include "operator/cli/outcome.h"
#include "operator/cli/run_directory.h"

namespace ringmaster::cli {

// `run_id` names the run directory if the user names none. However this process ends, the watchdog
// of the local cluster notices it and cleans up. The logs of a job that failed or was interrupted
// are kept, and their path is printed last.
Outcome<void> RunJobs(const RunOptions& options, const RunPaths& paths, const std::string& run_id);

}  // namespace ringmaster::cli
