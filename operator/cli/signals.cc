#include "operator/cli/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace ringmaster::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
std::atomic<int> write_fd{-1};  // a global variable, because a handler can access nothing else

void Handle(int sig) {
  int saved = errno;
  char word = static_cast<char>(sig);
  [[maybe_unused]] ssize_t sent = write(write_fd.load(), &word, 1);
  errno = saved;
}

// Under nohup the process goes on after a SIGHUP.
bool IsIgnoredHangUp(int sig) {
  struct sigaction now = {};
  return sig == SIGHUP && sigaction(sig, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

void Install(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (int sig : kSignals) {
    if (!IsIgnoredHangUp(sig)) sigaction(sig, &action, nullptr);
  }
}

}  // namespace

SignalThread::SignalThread(std::function<void(int, int)> on_signal) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return;
  read_fd_ = fds[0];
  write_fd = fds[1];
  Install(Handle);
  thread_ = std::thread([fd = read_fd_, on_signal = std::move(on_signal)] {
    int count = 0;
    char word = 0;
    while (true) {
      ssize_t got = read(fd, &word, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got != 1 || word == 0) return;
      on_signal(word, ++count);
    }
  });
}

SignalThread::~SignalThread() {
  if (read_fd_ < 0) return;
  Install(SIG_DFL);
  char end = 0;
  [[maybe_unused]] ssize_t sent = write(write_fd.load(), &end, 1);
  thread_.join();
  close(write_fd.exchange(-1));
  close(read_fd_);
}

}  // namespace ringmaster::cli
