// A tiny process that outlives us for a moment: when we end in whatever way (SIGKILL included), it
// kills every process that a container of this run has left and removes the run's own files from
// its directory (run_files.h). Logs stay, and so does what is not the run's.
//
// Thread rule: Start early, from one thread; Dismiss once.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <tl/expected.hpp>

namespace ringmaster::kubelet {

class ParentDeathWatchdog {
 public:
  // `entry`: the environment entry that marks the processes, "RINGMASTER_RUN=<id>".
  static tl::expected<std::unique_ptr<ParentDeathWatchdog>, std::string> Start(
      const std::string& entry, const std::filesystem::path& run_dir);
  ~ParentDeathWatchdog();

  // The run ended in order: the watchdog goes and touches nothing.
  void Dismiss();

  pid_t pid() const { return pid_; }

 private:
  ParentDeathWatchdog(pid_t pid, int pipe) : pid_(pid), pipe_(pipe) {}
  const pid_t pid_;
  int pipe_;
};

}  // namespace ringmaster::kubelet
