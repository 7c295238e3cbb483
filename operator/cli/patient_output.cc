#include "operator/cli/patient_output.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ringmaster::cli {
namespace {

constexpr int kMilliseconds = 100;  // milliseconds
constexpr int kLastPatience = 10;   // looks, after the end was requested

}  // namespace

bool PatientOutput::AwaitRoom(int fd) {
  int looks = 0;
  while (true) {
    pollfd room{fd, POLLOUT, 0};
    const int ready = poll(&room, 1, given_up_ ? 0 : kMilliseconds);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    given_up_ = given_up_ || (end_.stop_requested() && ++looks >= kLastPatience);
    if (given_up_) return false;
  }
}

// Once. If nobody reads it any more, nobody misses it.
void PatientOutput::SayLoss(int error) {
  if (error == EPIPE || std::exchange(said_loss_, true)) return;
  std::fprintf(stderr,
               "ringmaster: what the workers print can't be written here: %s; "
               "with --run-dir DIR it is kept in DIR/logs\n",
               std::strerror(error));
}

void PatientOutput::Write(std::string_view text) {
  const int fd = fileno(out_);
  if (fd < 0) {  // a stream in memory
    std::fwrite(text.data(), 1, text.size(), out_);
    std::fflush(out_);
    return;
  }
  while (!text.empty() && AwaitRoom(fd)) {
    // A pipe with room takes so much without waiting.
    const ssize_t n = write(fd, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (n < 0 && errno != EINTR && errno != EAGAIN) return SayLoss(errno);
    if (n > 0) text.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace ringmaster::cli
