// Reads the log of the pod that failed, for a report.
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

// The newest lines of the workers' output of a pod; none if there is no log.
std::deque<std::string> LastLines(kube::KubeApi* api, const std::string& ns,
                                  const std::string& pod);

// The log of a container as it was started first. kGone: it can't be read any more, because the pod
// is gone, its name is that of another pod, or the container was started again.
enum class LogState { kGrows, kEnded, kGone };

// kGrows where nobody can say. `uid`: of the pod, which may have given its name to another one;
// empty: whichever.
LogState StateOfLog(kube::KubeApi* api, const std::string& ns, const std::string& pod,
                    const std::string& container, const std::string& uid = "");

// If the stream of a log that grows has ended, the stream alone has.
bool StillRuns(kube::KubeApi* api, const std::string& ns, const std::string& pod,
               const std::string& container);

// FailureReport() of the pod that caused the failure. `shown`: its workers' output was shown
// already. `logs` is where a run on this machine keeps logs, also of pods that are gone; empty:
// nowhere.
std::vector<std::string> FailureLinesOf(kube::KubeApi* api, const JobRun& job,
                                        const std::string& why, bool shown,
                                        const std::filesystem::path& logs);

}  // namespace ringmaster::cli
