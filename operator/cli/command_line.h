// Reads the words of the command line. Parsing touches nothing: no file, no environment, no
// network.
#pragma once

#include <string>
#include <vector>

#include "operator/cli/commands.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// Help that was asked for is a Failure with kDone: its message goes to stdout. `program`: how the
// command is called in texts, "ringmaster" or "kubectl ringmaster". `home`: the folder that "~/"
// stands for.
Outcome<Command> ParseCommandLine(std::vector<std::string> words,
                                  const std::string& program = "ringmaster",
                                  const std::string& home = "");

}  // namespace ringmaster::cli
