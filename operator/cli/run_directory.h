// The directory of one `ringmaster run` (docs/contracts.md, section 4), and how other commands find
// it. A run is alive while its process holds the lock on `run.lock`, which the kernel releases
// however the process ends.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// Locations that main() reads from the environment.
struct RunPaths {
  std::filesystem::path run_dir;      // RINGMASTER_RUN_DIR
  std::filesystem::path runs;         // RINGMASTER_RUNS: where the folder of all runs is
  std::filesystem::path runtime_dir;  // XDG_RUNTIME_DIR, where earlier versions had their runs
  std::filesystem::path bin_dir;      // folder of this program and the sidecar
  bool of_nodes = false;  // true: the folder holds nodes of runs on other machines instead of runs
};

// The folder with one folder for each run of this user, or for each node, so that nodes are not
// taken for runs.
std::filesystem::path RunsFolder(const RunPaths& paths);

class RunDirectory {
 public:
  // `path` empty: a new folder `run_id` in RunsFolder (or RINGMASTER_RUN_DIR itself).
  static Outcome<RunDirectory> Create(const std::filesystem::path& path, const RunPaths& paths,
                                      const std::string& run_id);
  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;
  ~RunDirectory();  // releases the lock

  const std::filesystem::path& path() const { return path_; }
  bool ours() const { return ours_; }  // we have created it, so we remove it

  // Cleans up after a run that has ended: logs stay if the user named the folder or `keep` is set;
  // everything else is removed.
  static void Clean(const std::filesystem::path& path, bool ours, bool keep);
  // Removes all but the newest of the ended runs that have left logs.
  static void RemoveOld(const RunPaths& paths, size_t keep);

 private:
  struct Locks {
    int file = -1;
    int directory = -1;  // so long, systemd-tmpfiles removes nothing old from it
  };
  RunDirectory(std::filesystem::path path, bool ours, Locks locks)
      : path_(std::move(path)), ours_(ours), locks_(locks) {}
  static Outcome<Locks> TakeLocks(const std::filesystem::path& dir);

  std::filesystem::path path_;
  bool ours_;
  Locks locks_;
};

// kMachineLacks where the file system of the directory has less free than this, or no file more.
Outcome<void> CheckSpace(const std::filesystem::path& dir, std::uintmax_t least_bytes);

// Whether nobody has removed the directory of this run, which goes on.
bool IsThere(const std::filesystem::path& run_dir);

// Checks that this is a directory of this user, which nobody else may write, and no symbolic link.
// Another directory's content can't be trusted, because another user may have written it.
Outcome<void> CheckOwn(const std::filesystem::path& dir);

// Whether the run is alive; a failure where the file system can't tell, because it has no locks.
Outcome<bool> AskAlive(const std::filesystem::path& run_dir);

// The run is known to be alive, or to have ended. Of one that can't be asked neither is known.
bool IsAlive(const std::filesystem::path& run_dir);
bool HasEnded(const std::filesystem::path& run_dir);

// The living runs of this user in RunsFolder, the newest first. It fails if the folder belongs to
// another user.
Outcome<std::vector<std::filesystem::path>> LivingRuns(const RunPaths& paths);

// A line for the end of a run that did not succeed, before its directory is cleaned.
std::string WhereLogsAre(const std::filesystem::path& run_dir);

// The logs of the newest ended run that has left some; empty if none has.
std::filesystem::path LogsOfLastRun(const RunPaths& paths);

}  // namespace ringmaster::cli
