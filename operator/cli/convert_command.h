// `ringmaster convert FILE`.
#pragma once

#include "operator/cli/commands.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// The HorovodJob goes to standard output, what was not carried over to standard error.
Outcome<void> Convert(const ConvertOptions& options);

}  // namespace ringmaster::cli
