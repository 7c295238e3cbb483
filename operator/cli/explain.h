// The text of `ringmaster why JOB` and `ringmaster describe JOB`. Pure.
#pragma once

#include <string>
#include <vector>

#include "operator/api/time.h"
#include "operator/inspection/job_inspection.h"

namespace ringmaster::cli {

// Shows the state, what holds the job up or why it failed, unhealthy pods, and the newest warnings.
// `failure` names the failed worker and its exception if the job failed; else it is empty.
// `earlier` was observed `seconds` before, to tell whether training makes progress; null: not
// available.
std::string WhyText(const inspection::Inspection& found, const inspection::Inspection* earlier,
                    double seconds, const std::vector<std::string>& failure, api::Time now);

// Shows everything that is known, like `kubectl describe`.
std::string DescribeText(const inspection::Inspection& found, api::Time now);

}  // namespace ringmaster::cli
