// The text of `ringmaster top`: how each rank spent the time between two observations. Pure.
#pragma once

#include <string>

#include "operator/cli/job_inspection.h"

namespace ringmaster::cli {

// A worker that is new since `earlier` counts from its first view. The last line names the rank
// that the others wait for, if there is one.
std::string TopText(const Inspection& earlier, const Inspection& now);

}  // namespace ringmaster::cli
