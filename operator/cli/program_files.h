// What a machine without Ringmaster gets: the programs, the library and the Python package beside
// this `ringmaster`, in one archive.
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
  std::filesystem::path from;  // a file or folder of this machine
  std::filesystem::path to;    // below the folder into which the other machine unpacks
};

// The failure names the missing file.
Outcome<std::vector<ProgramFile>> FindProgramFiles(const std::filesystem::path& bin_dir);

// A key that identifies the files, by the name, size and time of each.
std::string KeyOf(const std::vector<ProgramFile>& files);

// Writes a tar file. A folder beside it is used and removed again.
Outcome<void> WriteArchive(const std::vector<ProgramFile>& files,
                           const std::filesystem::path& archive, const std::stop_token& stop = {});

// A POSIX shell script that unpacks the archive from standard input into the folder `programs`, and
// fails if the programs don't run afterwards.
std::string InstallScript(const std::filesystem::path& programs);

}  // namespace ringmaster::cli
