// `ringmaster apply`: creates or changes HorovodJobs, and the Secrets and ConfigMaps that they use.
#pragma once

#include "operator/cli/commands.h"
#include "operator/cli/connection.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// It sends nothing unless all objects of all files are valid.
Outcome<void> Apply(const ApplyOptions& options, const Surroundings& around);

}  // namespace ringmaster::cli
