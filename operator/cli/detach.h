// Starts a process that outlives its parent: an ssh connection or a terminal.
//
// Thread rule: call it from the main thread, before any other thread starts.
#pragma once

#include <functional>
#include <string>

#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// Reports that all is well, in one line.
using SayReady = std::function<void(const std::string& text)>;

// Calls `run` in a child process with its own session and no terminal. Returns when `run` has
// called `ready`, after printing the line, or with the failure that `run` returned before that. It
// does not return in the child: that process ends with `run`.
Outcome<void> RunDetached(const std::function<Outcome<void>(const SayReady& ready)>& run);

}  // namespace ringmaster::cli
