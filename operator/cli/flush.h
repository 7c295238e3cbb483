// Output of commands that go on until somebody ends them.
//
// Thread rule: free functions, safe from any thread.
#pragma once

#include <cstdio>

namespace ringmaster::cli {

// Writes what was printed to `out`. If nobody reads it any more (`logs -f JOB | head -1`), it ends
// the process by SIGPIPE, as other programs end; ours catches that signal because of its sockets.
void FlushOrEnd(std::FILE* out);

}  // namespace ringmaster::cli
