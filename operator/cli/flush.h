// Whether what a command prints arrives.
//
// Thread rule: free functions, safe from any thread.
#pragma once

#include <cstdio>

#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// For output that goes on until somebody ends it: writes what was printed to `out`. If nobody reads
// it any more (`logs -f JOB | head -1`), it ends the process by SIGPIPE, as other programs end;
// ours catches that signal because of its sockets. If it can't be written, as on a full disk, it
// says so and ends the process with kMachineLacks.
void FlushOrEnd(std::FILE* out);

// For a command that is done: fails if not all that was printed to `out` could be written. A reader
// that has gone is no failure.
Outcome<void> FlushAll(std::FILE* out);

}  // namespace ringmaster::cli
