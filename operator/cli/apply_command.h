// `ringmaster apply`: makes or changes HorovodJobs, and the Secrets and ConfigMaps that they use.
#pragma once

#include "operator/cli/commands.h"
#include "operator/cli/connection.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// Nothing is sent unless every object of every file is right.
Outcome<void> Apply(const ApplyOptions& options, const Surroundings& around);

}  // namespace ringmaster::cli
