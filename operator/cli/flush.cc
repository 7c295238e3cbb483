#include "operator/cli/flush.h"

#include <signal.h>

#include <cerrno>

namespace ringmaster::cli {

void FlushOrEnd(std::FILE* out) {
  if (std::fflush(out) == 0 || errno != EPIPE) return;
  signal(SIGPIPE, SIG_DFL);
  raise(SIGPIPE);
}

}  // namespace ringmaster::cli
