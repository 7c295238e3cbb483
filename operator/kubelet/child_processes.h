// The child processes of the kubelet: which pod each belongs to, and which have ended.
//
// Owner and thread: the kubelet's loop, which forks them too.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::kubelet {

class ChildProcesses {
 public:
  using Clock = std::chrono::steady_clock;
  struct Exit {
    pid_t pid;
    int wait_status;
    std::string pod_uid;
  };

  // A child that leads a group of its own.
  void Add(pid_t pid, const std::string& pod_uid);
  bool empty() const { return children_.empty(); }
  // What becomes readable when one of them ends.
  void AppendTo(std::vector<pollfd>& fds) const;
  // Waits for those that have ended, and kills what they leave behind in their groups.
  std::vector<Exit> ReapExited();
  // Waits for orphans of pods; once in a while, or at `next_orphan_check`.
  void ReapOrphans(Clock::time_point now);
  std::optional<Clock::time_point> next_orphan_check() const;

 private:
  struct Child {
    int pidfd;
    std::string pod_uid;
  };
  std::map<pid_t, Child> children_;
  pid_t dead_orphan_ = 0;  // a zombie that is no child of `children_`
  Clock::time_point dead_orphan_since_;
};

}  // namespace ringmaster::kubelet
