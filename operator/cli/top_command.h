// `ringmaster top JOB`.
#pragma once

#include "operator/cli/commands.h"
#include "operator/cli/connection.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// On a terminal until the job is over or somebody ends it; else one look.
Outcome<void> Top(const TopOptions& options, const Surroundings& around);

}  // namespace ringmaster::cli
