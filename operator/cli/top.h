// What `ringmaster top` shows: where the time of each rank went between two looks. Pure.
#pragma once

#include <string>

#include "operator/cli/job_inspection.h"

namespace ringmaster::cli {

// A worker that is new since `earlier` counts from its first view. Ends with a line that names the
// rank that the others wait for, if there is one.
std::string TopText(const Inspection& earlier, const Inspection& now);

}  // namespace ringmaster::cli
