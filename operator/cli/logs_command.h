// `ringmaster logs`: the output of a pod's containers, or of those of all pods of a job.
#pragma once

#include "operator/cli/commands.h"
#include "operator/cli/connection.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// With --follow it returns when the pod's container has ended, or the job with all pods that have
// joined it.
Outcome<void> Logs(const LogsOptions& options, const Surroundings& around);

// The same over any KubeApi; lines go to `out`. The API server has no logs of pods that are gone:
// if a run on this machine has kept one, its path is printed.
Outcome<void> PrintLogs(const inspection::Connection& to, const Surroundings& around,
                        const LogsOptions& options, std::FILE* out);

}  // namespace ringmaster::cli
