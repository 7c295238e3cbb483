// `ringmaster top JOB`.
#pragma once

#include "operator/cli/commands.h"
#include "operator/cli/connection.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// On a terminal it continues until the job is over or the user ends it; otherwise it prints once.
Outcome<void> Top(const TopOptions& options, const Surroundings& around);

}  // namespace ringmaster::cli
