// The text of `ringmaster why JOB` and `ringmaster describe JOB`. Pure.
#pragma once

#include <string>
#include <vector>

#include "operator/api/time.h"
#include "operator/inspection/job_inspection.h"

namespace ringmaster::cli {

// One look: the state, what holds the job up or why it failed, the pods that are not well, the
// newest warnings. `failure`: of a failed job, which worker and which exception; else empty.
// `earlier`: a look some `seconds` before, which tells whether training goes on; null: none.
std::string WhyText(const inspection::Inspection& found, const inspection::Inspection* earlier,
                    double seconds, const std::vector<std::string>& failure, api::Time now);

// All that is known, in the manner of `kubectl describe`.
std::string DescribeText(const inspection::Inspection& found, api::Time now);

}  // namespace ringmaster::cli
