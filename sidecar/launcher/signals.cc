#include "sidecar/launcher/signals.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace ringmaster::launcher {
namespace {

// Told by the kernel when the parent goes; a signal that nobody else sends us, so that it can't be
// mistaken for a drain.
constexpr int kParentDied = SIGUSR2;

}  // namespace

Signals::Signals() : parent_(getppid()) {}

Signals::~Signals() {
  if (fd_ >= 0) close(fd_);
}

bool Signals::Open() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, kParentDied}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  // Ignored, as whoever started us may have it, it has the kernel reap our children: none would be
  // seen to end.
  signal(SIGCHLD, SIG_DFL);
  fd_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  return fd_ >= 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 &&
         prctl(PR_SET_PDEATHSIG, kParentDied) == 0;
}

Signals::Received Signals::Read() const {
  Received received;
  signalfd_siginfo info;
  while (read(fd_, &info, sizeof info) == sizeof info) {
    switch (static_cast<int>(info.ssi_signo)) {
      case SIGTERM:
      case SIGINT:
      case SIGHUP:
        ++received.terminate;
        break;
      case kParentDied:
        // The kernel also sends it when only the thread that started us ended.
        received.orphaned = received.orphaned || getppid() != parent_;
        break;
    }
  }
  return received;
}

}  // namespace ringmaster::launcher
