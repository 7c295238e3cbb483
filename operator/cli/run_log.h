// The log of a run's own program: a file of the run directory, for investigating problems.
#pragma once

#include <filesystem>
#include <string>

namespace ringmaster::cli {

// From now on this process logs to logs/NAME.log of the run directory.
void LogToFile(const std::filesystem::path& run_dir, const std::string& name);

}  // namespace ringmaster::cli
