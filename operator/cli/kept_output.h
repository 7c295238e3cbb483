// `ringmaster run --output-filename DIR` keeps each worker's output in DIR/rank.N/stdout and
// DIR/rank.N/stderr, below a folder with the job's name if a run has several jobs. The launcher of
// each pod writes the files (docs/contracts.md); this file prepares the directory.
//
// Thread rule: none, nothing is kept.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// Creates the directory and writes it into the jobs. Does nothing if `dir` is empty. kUsage: the
// directory can't be written.
Outcome<void> PrepareOutput(const std::filesystem::path& dir, std::vector<nlohmann::json>* jobs);
// Removes the output that an earlier run has left in the directories that these jobs name.
void RemoveEarlierOutput(const std::vector<nlohmann::json>& jobs);

}  // namespace ringmaster::cli
