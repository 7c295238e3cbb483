// The token that opens the /status of a job's sidecars. It is derived from the job's ring key,
// which is in a file of the run directory or, on a cluster, in the job's Secret.
//
// Thread rule: none, nothing is kept.
#pragma once

#include <filesystem>
#include <string>

#include "operator/kube/kube_api.h"

namespace ringmaster::inspection {

struct JobToken {
  std::string token;
  // Uid of the job that owns the Secret; empty if no job owns it or there is no Secret. Another job
  // with the same name may have left it.
  std::string job_uid;
};

// An empty token: there is no key, so nothing is closed. The failure: it is not for us to read.
kube::Result<std::string> SidecarTokenOfRun(const std::filesystem::path& run_dir);
kube::Result<JobToken> SidecarTokenOfJob(kube::KubeApi* api, const std::string& ns,
                                         const std::string& job);

}  // namespace ringmaster::inspection
