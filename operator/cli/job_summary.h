// What is said about a job when its run is over: `exit_reason`, how long it took, its steps and all
// views that it had. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/cli/job_run.h"

namespace ringmaster::cli {

// For programs.
nlohmann::json JobSummary(const JobRun& job, const std::string& exit_reason, double seconds);
// For people.
std::vector<std::string> JobSummaryLines(const JobRun& job, const std::string& exit_reason,
                                         double seconds);

}  // namespace ringmaster::cli
