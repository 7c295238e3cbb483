#include "operator/kubelet/child_processes.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "operator/kubelet/process.h"

namespace ringmaster::kubelet {
namespace {

constexpr std::chrono::milliseconds kOrphanStaysDead{200};

}  // namespace

void ChildProcesses::Add(pid_t pid, const std::string& pod_uid) {
  children_[pid] = {static_cast<int>(syscall(SYS_pidfd_open, pid, 0)), pod_uid};
}

void ChildProcesses::AppendTo(std::vector<pollfd>& fds) const {
  for (const auto& [pid, child] : children_) fds.push_back({child.pidfd, POLLIN, 0});
}

std::vector<ChildProcesses::Exit> ChildProcesses::ReapExited() {
  std::vector<Exit> exits;
  for (auto it = children_.begin(); it != children_.end();) {
    const auto [pid, child] = *it;
    ReapGroup(pid);
    siginfo_t info{};
    if (waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != pid) {
      ++it;
      continue;
    }
    // The group dies before its number can be given to somebody else.
    kill(-pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    close(child.pidfd);
    it = children_.erase(it);
    exits.push_back({pid, status, child.pod_uid});
  }
  return exits;
}

// Processes of a pod whose parents were killed with it become our children (we are a subreaper),
// and zombies when they end. Whoever started a child that the kubelet did not waits for it at once,
// so one that stays dead is an orphan.
void ChildProcesses::ReapOrphans(Clock::time_point now) {
  siginfo_t info{};
  const bool any = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
  const pid_t dead = any && !children_.contains(info.si_pid) ? info.si_pid : 0;
  if (dead != 0 && dead == dead_orphan_ && now - dead_orphan_since_ >= kOrphanStaysDead) {
    waitpid(dead, nullptr, WNOHANG);
    dead_orphan_ = 0;
  } else if (dead != dead_orphan_) {
    dead_orphan_ = dead;
    dead_orphan_since_ = now;
  }
}

std::optional<ChildProcesses::Clock::time_point> ChildProcesses::next_orphan_check() const {
  if (dead_orphan_ == 0) return std::nullopt;
  return dead_orphan_since_ + kOrphanStaysDead;
}

}  // namespace ringmaster::kubelet
