// A process that outlives whoever has started it: an ssh connection, a terminal.
//
// Thread rule: from the main thread, before any other thread is begun.
#pragma once

#include <functional>
#include <string>

#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// Says that all is well, in one line.
using SayReady = std::function<void(const std::string& text)>;

// Calls `run` in a child with a session of its own and no terminal, and returns as soon as that has
// said so, having printed the line; or with the failure that `run` ended with before. In the child
// this doesn't return: the process ends with `run`.
Outcome<void> RunDetached(const std::function<Outcome<void>(const SayReady& ready)>& run);

}  // namespace ringmaster::cli
