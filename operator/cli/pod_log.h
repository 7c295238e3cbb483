// The log of the pod that failed, for who has to say why.
//
// Thread rule: free functions that block; nothing is kept.
#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "operator/cli/job_run.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

// The newest lines of what the workers of a pod have printed; none where there is no log.
std::deque<std::string> LastLines(kube::KubeApi* api, const std::string& ns,
                                  const std::string& pod);

// FailureReport() of the pod that is to blame. `shown`: what the workers printed has been shown.
// `logs`: where a run on this machine keeps the logs, also of a pod that is gone; empty: nowhere.
std::vector<std::string> FailureLinesOf(kube::KubeApi* api, const JobRun& job,
                                        const std::string& why, bool shown,
                                        const std::filesystem::path& logs);

}  // namespace ringmaster::cli
