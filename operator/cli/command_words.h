// What completion has to know of the commands, taken from their options themselves. Pure.
#pragma once

#include <vector>

#include "operator/cli/completion.h"

namespace ringmaster::cli {

// Every command, also under its other names.
std::vector<CommandWords> AllCommandWords();

}  // namespace ringmaster::cli
