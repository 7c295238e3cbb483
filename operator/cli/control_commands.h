// The commands that look at or change a running cluster: get, logs, scale, drain, kill, delete.
// Clients of the API server, as kubectl is; only `kill` needs to be on the machine of the pods.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "operator/cli/command_line.h"
#include "operator/cli/outcome.h"
#include "operator/cli/run_directory.h"

namespace ringmaster::cli {

Outcome<void> Get(const GetOptions& options, const RunPaths& paths);
Outcome<void> Logs(const LogsOptions& options, const RunPaths& paths);
Outcome<void> Scale(const ScaleOptions& options, const RunPaths& paths);
Outcome<void> Drain(const DrainOptions& options, const RunPaths& paths);
Outcome<void> Kill(const KillOptions& options, const RunPaths& paths);
Outcome<void> Delete(const DeleteOptions& options, const RunPaths& paths);

}  // namespace ringmaster::cli
