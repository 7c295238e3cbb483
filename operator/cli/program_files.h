// What a machine without Ringmaster gets: the programs, the library and the Python package beside
// this `ringmaster`, as one archive.
//
// Thread rule: free functions and values.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/cli/outcome.h"

namespace ringmaster::cli {

struct ProgramFile {
  std::filesystem::path from;  // a file or a folder of this machine
  std::filesystem::path to;    // below the folder that the other machine unpacks to
};

// The failure names what is not there.
Outcome<std::vector<ProgramFile>> FindProgramFiles(const std::filesystem::path& bin_dir);

// The same for the same files, another one for others: of the name, size and time of each.
std::string KeyOf(const std::vector<ProgramFile>& files);

// Writes a tar file, with a folder beside it that is removed again.
Outcome<void> WriteArchive(const std::vector<ProgramFile>& files,
                           const std::filesystem::path& archive, const std::stop_token& stop = {});

// For a POSIX shell: unpacks such a file, its standard input, as the folder `programs`, and fails
// where the programs don't run then.
std::string InstallScript(const std::filesystem::path& programs);

}  // namespace ringmaster::cli
