// `ringmaster run --output-filename DIR`: what each worker prints is kept in DIR/rank.N/stdout and
// DIR/rank.N/stderr, below a folder of the job's name where a run has several jobs. The launcher of
// each pod writes the files (docs/contracts.md); here the directory is made ready.
//
// Thread rule: none, nothing is kept.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// Makes the directory, removes what an earlier run has kept in it, and tells the jobs of it.
// `dir` empty: does nothing. kUsage: it can't be written.
Outcome<void> PrepareOutput(const std::filesystem::path& dir, std::vector<nlohmann::json>* jobs);

}  // namespace ringmaster::cli
