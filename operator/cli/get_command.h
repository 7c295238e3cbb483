// `ringmaster get`: jobs with their pods and workers, once, or with a line for each change.
#pragma once

#include "operator/cli/commands.h"
#include "operator/cli/connection.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// With --watch it returns when the run on this machine ends, or never.
Outcome<void> Get(const GetOptions& options, const Surroundings& around);

}  // namespace ringmaster::cli
