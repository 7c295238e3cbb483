// `ringmaster timeline JOB`.
#pragma once

#include "operator/cli/commands.h"
#include "operator/cli/connection.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// Writes the last seconds of all ranks into one file.
Outcome<void> Timeline(const TimelineOptions& options, const Surroundings& around);

}  // namespace ringmaster::cli
