// Loads HorovodJobs to run from files and folders, or makes one for `run -np`.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/cli/commands.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// Name of the Secret with the file of `run --carry`, and its only entry.
inline constexpr char kCarriedSecret[] = "ringmaster-carried";
inline constexpr char kCarriedEntry[] = "file";

// Returns jobs ready to be created, with namespace and working directory. The failure (kUsage) has
// a line for each error in any of the files: "job.yaml: spec.elasticPolicy.minReplicas: 9 is more
// than ...".
Outcome<std::vector<nlohmann::json>> LoadManifests(const std::vector<std::filesystem::path>& paths);

// The job of `run -np N COMMAND`: one pod with N workers; or pods with one worker each if a range
// was given, so that the job can grow and shrink.
Outcome<nlohmann::json> JobForCommand(const RunOptions& options, const std::filesystem::path& cwd);

// "python3 my_train.py" -> "my-train": a valid name in Kubernetes.
std::string NameForCommand(const std::vector<std::string>& command);

}  // namespace ringmaster::cli
