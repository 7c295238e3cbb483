// The commands that change a running cluster: scale, drain, kill, delete. They are clients of the
// API server, as kubectl is; only `kill` has to run on the machine of the pods.
#pragma once

#include "operator/cli/commands.h"
#include "operator/cli/connection.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

Outcome<void> Scale(const ScaleOptions& options, const Surroundings& around);
Outcome<void> Drain(const DrainOptions& options, const Surroundings& around);
Outcome<void> Kill(const KillOptions& options, const Surroundings& around);
Outcome<void> Delete(const DeleteOptions& options, const Surroundings& around);

}  // namespace ringmaster::cli
