// `ringmaster run`: a cluster of this machine, the operator, the jobs, until they end.
#pragma once

#include <string>

#include "operator/cli/commands.h"
#include "operator/cli/outcome.h"
#include "operator/cli/run_directory.h"

namespace ringmaster::cli {

// `run_id`: the name of the run directory where the user names none. However this process ends, the
// watchdog of the local cluster sees it and leaves nothing behind; logs of a job that failed or was
// interrupted stay, and their path is said last.
Outcome<void> RunJobs(const RunOptions& options, const RunPaths& paths, const std::string& run_id);

}  // namespace ringmaster::cli
