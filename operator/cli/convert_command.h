// `ringmaster convert FILE`.
#pragma once

#include "operator/cli/commands.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// Prints the HorovodJob to standard output, and what was not converted to standard error.
Outcome<void> Convert(const ConvertOptions& options);

}  // namespace ringmaster::cli
