// The directory of one `ringmaster run` (docs/contracts.md, section 4) and how others find it. A
// run is alive while its process holds the lock on `run.lock`: the kernel lets go of it however the
// process ends.
//
// Thread rule: one thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// What main() reads from the environment about where things lie.
struct RunPaths {
  std::filesystem::path run_dir;      // RINGMASTER_RUN_DIR
  std::filesystem::path runtime_dir;  // XDG_RUNTIME_DIR
  std::filesystem::path bin_dir;      // where this program lies, with the sidecar beside it
  bool of_nodes = false;              // not of runs: nodes of runs on other machines
};

// The folder that holds the runs of this user, one folder each; or the nodes, so that nobody takes
// them for runs.
std::filesystem::path RunsFolder(const RunPaths& paths);

class RunDirectory {
 public:
  // `path` empty: a new folder, named `run_id`, under RunsFolder (or RINGMASTER_RUN_DIR itself).
  static Outcome<RunDirectory> Create(const std::filesystem::path& path, const RunPaths& paths,
                                      const std::string& run_id);
  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;
  ~RunDirectory();  // gives up the lock

  const std::filesystem::path& path() const { return path_; }
  bool ours() const { return ours_; }  // made by us, so removed by us

  // What is left of a run that has ended: logs, where the user named the folder or they are to be
  // kept, else nothing.
  static void Clean(const std::filesystem::path& path, bool ours, bool keep);
  // Of runs that have ended and left logs, removes all but the newest.
  static void RemoveOld(const RunPaths& paths, size_t keep);

 private:
  RunDirectory(std::filesystem::path path, bool ours, int lock_fd)
      : path_(std::move(path)), ours_(ours), lock_fd_(lock_fd) {}

  std::filesystem::path path_;
  bool ours_;
  int lock_fd_;
};

// A directory of this user that nobody else may write, and no symbolic link. What lies in another
// is not to be believed: somebody else may have put it there.
Outcome<void> CheckOwn(const std::filesystem::path& dir);

bool IsAlive(const std::filesystem::path& run_dir);

// The runs of this user in RunsFolder that are alive, the newest first. The failure: the folder is
// somebody else's.
Outcome<std::vector<std::filesystem::path>> LivingRuns(const RunPaths& paths);

// Where the newest of them that has ended left its logs; empty: none has.
std::filesystem::path LogsOfLastRun(const RunPaths& paths);

}  // namespace ringmaster::cli
