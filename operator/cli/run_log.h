// The log of a run's own program: a file of the run directory, for who looks for a fault.
#pragma once

#include <filesystem>
#include <string>

namespace ringmaster::cli {

// From now on what this process logs goes to logs/NAME.log of the run directory.
void LogToFile(const std::filesystem::path& run_dir, const std::string& name);

}  // namespace ringmaster::cli
