// How a job goes, as people read it: membership changes and the progress line. Pure.
#pragma once

#include <string>

#include "operator/cli/progress.h"
#include "operator/cli/view_history.h"

namespace ringmaster::cli {

// "view 1.3: worker digits-worker-2/0 lost (killed by signal 9); 4 -> 3; back to stepping after
// ..."
std::string ChangeText(const ViewRecord& view, const JobProgress& job);

// "step 120/400  loss 0.213  812 samples/s  4 workers  view 1.3"
std::string ProgressText(const JobProgress& job);

// "[#####-----]" of `width` characters between the brackets; empty without a known total.
std::string Bar(const JobProgress& job, int width);

}  // namespace ringmaster::cli
