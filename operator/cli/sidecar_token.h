// The token that opens the /status of a job's sidecars: made of the job's ring key, which is a file
// of the run directory, or in the job's Secret on a cluster.
//
// Thread rule: none, nothing is kept.
#pragma once

#include <filesystem>
#include <string>

#include "operator/cli/outcome.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

// Empty: there is no key, so nothing is closed. The failure: it is not for us to read.
Outcome<std::string> SidecarTokenOfRun(const std::filesystem::path& run_dir);
Outcome<std::string> SidecarTokenOfJob(kube::KubeApi* api, const std::string& ns,
                                       const std::string& job);

}  // namespace ringmaster::cli
