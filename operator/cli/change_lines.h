// The last changes of a job's world as lines of text, from what its sidecars remember: they do so
// longer than a cluster keeps events. Pure.
#pragma once

#include <string>
#include <vector>

#include "operator/api/time.h"
#include "operator/inspection/job_inspection.h"

namespace ringmaster::cli {

// "   4m ago  view 1.3, 3 workers: PodLost; digits-worker-2 lost; paused for 41 ms": the newest
// change is last, there are ten at most.
std::vector<std::string> ChangeLines(const inspection::Inspection& found, api::Time now);

// The last change in which somebody was lost, and the one after it; empty: nobody was lost.
std::vector<std::string> LastLossLines(const inspection::Inspection& found, api::Time now);

}  // namespace ringmaster::cli
