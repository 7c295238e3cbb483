// The token that opens the /status of a job's sidecars. It is derived from the job's ring key,
// which is in a file of the run directory or, on a cluster, in the job's Secret.
//
// Thread rule: none, nothing is kept.
#pragma once

#include <filesystem>
#include <string>

#include "operator/cli/outcome.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

struct JobToken {
  std::string token;
  // Uid of the job that owns the Secret; empty if no job owns it or there is no Secret. Another job
  // with the same name may have left it.
  std::string job_uid;
};

// An empty token means that there is no key, so the status is open. It fails if we may not read the
// key.
Outcome<std::string> SidecarTokenOfRun(const std::filesystem::path& run_dir);
Outcome<JobToken> SidecarTokenOfJob(kube::KubeApi* api, const std::string& ns,
                                    const std::string& job);

}  // namespace ringmaster::cli
