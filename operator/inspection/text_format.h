// Texts for people: views, durations, membership changes, the progress line. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "operator/cli/progress.h"

namespace ringmaster::cli {

std::string ViewName(uint64_t epoch);             // "1.7"
std::string Counted(size_t n, const char* noun);  // "1 worker", "2 workers"
std::string Milliseconds(double seconds);         // "41 ms", "1.3 s"
std::string Number(double value);                 // at most four digits, no trailing zeros
std::string Clock(double seconds);                // "  12.3s", the left margin of every line

// "detect 1, decide 12, connect 2, redo 1, resume 25": milliseconds, in chronological order.
std::string PhasesText(const std::map<std::string, double>& seconds);

// "view 1.3: worker digits-worker-2/0 lost (killed by signal 9); 4 -> 3; back to stepping after
// ..."
std::string ChangeText(const ViewRecord& view, const JobProgress& job);

// "step 120/400  loss 0.213  812 samples/s  4 workers  view 1.3"
std::string ProgressText(const JobProgress& job);

// "[#####-----]" with `width` characters between the brackets; empty if the total is unknown.
std::string Bar(const JobProgress& job, int width);

}  // namespace ringmaster::cli
