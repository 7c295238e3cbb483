// `ringmaster why JOB` and `ringmaster describe JOB`.
#pragma once

#include "operator/cli/commands.h"
#include "operator/cli/connection.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

Outcome<void> Describe(const DescribeOptions& options, const Surroundings& around);
// Observes the job twice if no condition reports a problem, to see whether steps are completed.
Outcome<void> Why(const WhyOptions& options, const Surroundings& around);

}  // namespace ringmaster::cli
