#include "operator/cli/flush.h"

#include <poll.h>
#include <signal.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace ringmaster::cli {
namespace {

bool NobodyReads(std::FILE* out) {
  pollfd pipe{.fd = fileno(out), .events = POLLOUT, .revents = 0};
  return poll(&pipe, 1, 0) == 1 && (pipe.revents & POLLERR) != 0;
}

// Writes what was printed. 0: all is written; EPIPE: nobody reads it any more. Of an earlier write
// that has failed nobody knows why: then it is EIO.
int Write(std::FILE* out) {
  if (std::fflush(out) != 0) return errno;
  if (std::ferror(out) == 0) return 0;
  return NobodyReads(out) ? EPIPE : EIO;
}

std::string Text(int error) {
  return std::string("what it printed can't be written: ") + std::strerror(error);
}

}  // namespace

void FlushOrEnd(std::FILE* out) {
  const int error = Write(out);
  if (error == 0) return;
  if (error != EPIPE) {
    std::fprintf(stderr, "ringmaster: %s\n", Text(error).c_str());
    std::_Exit(static_cast<int>(ExitCode::kMachineLacks));
  }
  signal(SIGPIPE, SIG_DFL);
  raise(SIGPIPE);
}

Outcome<void> FlushAll(std::FILE* out) {
  const int error = Write(out);
  if (error == 0 || error == EPIPE) return {};
  return Fail(ExitCode::kMachineLacks, Text(error));
}

}  // namespace ringmaster::cli
