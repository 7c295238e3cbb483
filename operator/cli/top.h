// The text of `ringmaster top`: how each rank spent the time between two observations. Pure.
#pragma once

#include <string>

#include "operator/inspection/job_inspection.h"

namespace ringmaster::cli {

// A worker that is new since `earlier` counts from its first view. Below the ranks it names the one
// that the others wait for, if there is one, and says which sidecars gave no answer now: a screen
// that is drawn anew takes away what was said beside it.
std::string TopText(const inspection::Inspection& earlier, const inspection::Inspection& now);

}  // namespace ringmaster::cli
