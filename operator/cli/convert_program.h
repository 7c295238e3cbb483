// Takes the command of a training job apart: what starts the processes of all ranks (`mpirun`,
// `horovodrun`, `torchrun`) and the program that it starts. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
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
  // Of the starter's options those that have a field here: nnodes, nproc-per-node, max-restarts of
  // torchrun, min-np and max-np of horovodrun.
  std::map<std::string, std::string> settings;
  std::string doubt;  // why `command` may begin with a word that is no program; empty: it doesn't
};

// Of an elastic policy, in pods.
struct Bounds {
  std::optional<std::int64_t> least, most;
};

// Notes say of each option of the starter without a meaning here that it is left out. A command
// without a starter comes back as it is. One in a shell (`sh -c "mpirun ..."`) is taken apart where
// nothing in it needs the shell.
Program ProgramOf(const Words& command, Notes* notes);

// What --min-np and --max-np of horovodrun say for pods of `slots` workers, of which there are
// `replicas`. A note says what became of them.
Bounds BoundsOf(const Program& program, std::int64_t slots, std::int64_t replicas, Notes* notes);

// Whether a word of the command names torchrun, such as a line of a shell that ProgramOf has left.
bool NamesTorchrun(const Words& command);

}  // namespace ringmaster::cli::conversion
