#include "operator/cli/pod_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

namespace ringmaster::cli {
namespace {

// Refers to a process, so that its id can't be reused for another between check and signal.
class ProcessHandle {
 public:
  explicit ProcessHandle(pid_t pid) : fd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}
  ProcessHandle(const ProcessHandle&) = delete;
  ProcessHandle& operator=(const ProcessHandle&) = delete;
  ~ProcessHandle() {
    if (fd_ >= 0) close(fd_);
  }
  bool ok() const { return fd_ >= 0; }
  bool Send(int signal) const { return syscall(SYS_pidfd_send_signal, fd_, signal, 0, 0) == 0; }

 private:
  const int fd_;
};

bool RunsWith(pid_t pid, const std::string& variable) {
  std::ifstream environment(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  for (std::string one; std::getline(environment, one, '\0');) {
    if (one == variable) return true;
  }
  return false;
}

}  // namespace

std::string KillProcessOfPod(pid_t pid, const std::string& pod_uid) {
  if (pid <= 1) return fmt::format("{} is no process of a pod", pid);
  if (pod_uid.empty()) return "the pod has no uid";
  const ProcessHandle process(pid);
  if (!process.ok()) return fmt::format("process {}: {}", pid, std::strerror(errno));
  if (!RunsWith(pid, "RINGMASTER_POD_UID=" + pod_uid)) {
    return fmt::format("process {} does not belong to the pod with uid {}", pid, pod_uid);
  }
  if (!process.Send(SIGKILL)) return fmt::format("process {}: {}", pid, std::strerror(errno));
  return "";
}

}  // namespace ringmaster::cli
