// Takes the command of a training job apart: what starts the processes of all ranks (`mpirun`,
// `horovodrun`, `torchrun`) and the program that it starts. Pure.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "operator/cli/convert_parts.h"

namespace ringmaster::cli::conversion {

enum class Starter { kNone, kMpi, kTorch };  // kMpi: also horovodrun

struct Program {
  Starter starter = Starter::kNone;
  std::string starter_name;                              // as it was written: "/usr/bin/mpirun"
  Words command;                                         // without the starter
  std::vector<std::pair<std::string, std::string>> env;  // that it would set: -x, -genv
  // Of torchrun's options those that have a field here: nnodes, nproc-per-node, max-restarts.
  std::map<std::string, std::string> settings;
};

// Notes say of each option of the starter without a meaning here that it is left out. A command
// without a starter comes back as it is. One in a shell (`sh -c "mpirun ..."`) is taken apart where
// nothing in it needs the shell.
Program ProgramOf(const Words& command, Notes* notes);

// Whether a word of the command names torchrun, such as a line of a shell that ProgramOf has left.
bool NamesTorchrun(const Words& command);

}  // namespace ringmaster::cli::conversion
