#include "sidecar/app/process_identity.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace ringmaster::app {

bool ProcessIdentity::Is(bool standby, int slot, uint64_t incarnation) const {
  if (standby) return standby_incarnation_ == incarnation;
  return !this->standby() && slot_ == slot && incarnation_ == incarnation;
}

bool ProcessIdentity::HasEnded() const { return same_pids_ && ProcessEnded(pid_); }

void ProcessIdentity::NamedByLauncher(const ProcessName& name) {
  if (name.standby_incarnation != 0) standby_incarnation_ = name.standby_incarnation;
  launcher_pid_ = name.pid;
  began_ = name.began;
  if (!same_pids_) pid_ = name.pid;
}

void ProcessIdentity::NamedByItself(int64_t own_pid, int64_t peer_pid) {
  own_pid_ = own_pid;
  if (peer_pid == 0 || peer_pid != own_pid) return;
  pid_ = peer_pid;
  same_pids_ = true;
}

void ProcessIdentity::TakeSlot(int slot, uint64_t incarnation) {
  slot_ = slot;
  incarnation_ = incarnation;
}

// Plain reads: a stream throws when the process goes while it is read.
bool ProcessEnded(int64_t pid) {
  if (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return true;
  int fd = open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  char text[512];
  ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  if (got <= 0) return true;
  text[got] = '\0';
  const char* end = std::strrchr(text, ')');
  return end != nullptr && end[1] == ' ' && (end[2] == 'Z' || end[2] == 'X');
}

}  // namespace ringmaster::app
