// What a job's pod template says that this machine gives in another way than a cluster, or not at
// all. Pure.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// `run --volume CLAIM=DIR`: the folder, an absolute path, by the claim that it stands for.
using ClaimFolders = std::map<std::string, std::filesystem::path>;

// "CLAIM=DIR" of the command line, each; a folder is taken from `cwd`, and it must be there.
Outcome<ClaimFolders> ParseClaimFolders(const std::vector<std::string>& words,
                                        const std::filesystem::path& cwd);

// Gives the jobs these folders for their claims: all pods share them, and they stay. A claim that
// no job has is an error.
Outcome<void> GiveFolders(const ClaimFolders& folders, std::vector<nlohmann::json>* jobs);

// The fields of the job that have no effect in local mode, such as
// "spec.worker.template.spec.containers[0].livenessProbe".
std::vector<std::string> IgnoredFields(const nlohmann::json& job);

}  // namespace ringmaster::cli
