// HorovodJobs to run: from files and folders, or made for `run -np`.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/cli/commands.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// The Secret of what `run --carry` brings, and its only entry.
inline constexpr char kCarriedSecret[] = "ringmaster-carried";
inline constexpr char kCarriedEntry[] = "file";

// Jobs ready to be created, namespace and working directory filled in. The failure (kUsage) has a
// line for each thing that is wrong in any of the files: "job.yaml: spec.elasticPolicy.minReplicas:
// 9 is more than ...".
Outcome<std::vector<nlohmann::json>> LoadManifests(const std::vector<std::filesystem::path>& paths);

// The job of `run -np N COMMAND`: one pod of N workers; pods of one worker each where a range was
// asked for, so that it can grow and shrink.
Outcome<nlohmann::json> JobForCommand(const RunOptions& options, const std::filesystem::path& cwd);

// "python3 my_train.py" -> "my-train": a name that Kubernetes takes.
std::string NameForCommand(const std::vector<std::string>& command);

}  // namespace ringmaster::cli
