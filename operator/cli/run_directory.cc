#include "operator/cli/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/kubelet/run_files.h"

namespace ringmaster::cli {
namespace fs = std::filesystem;
namespace {

using kubelet::kRunFiles;
using kubelet::kRunLock;

// The longest path of a unix socket, and our longest path below the run directory.
constexpr std::size_t kLongestSocket = 107;
constexpr std::string_view kSocketBelow =
    "/pods/00000000-0000-0000-0000-000000000000/ringmaster-run/link";
constexpr std::size_t kLongestRunDir = kLongestSocket - kSocketBelow.size();

// "link/" means the target of the link, "link" the link itself.
fs::path WithoutSlash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  const int fd_;
};

tl::unexpected<Failure> NotOwn(const fs::path& dir, const std::string& what) {
  return Fail(ExitCode::kMachineLacks,
              fmt::format("run directory {} {}. Wanted is a directory of user {} that nobody else "
                          "may write: remove it, or name another with --run-dir",
                          dir.string(), what, geteuid()));
}

// Some network file systems have no locks.
tl::unexpected<Failure> NotLocked(const fs::path& dir, int error) {
  return Fail(ExitCode::kMachineLacks,
              fmt::format("run directory {} can't be locked: {}. Without a lock nobody knows "
                          "whether a run is alive there: name a directory on a local file system "
                          "with --run-dir or $RINGMASTER_RUNS",
                          dir.string(), std::strerror(error)));
}

std::string WhyNotOwn(const struct stat& info) {
  if (!S_ISDIR(info.st_mode)) return "is no directory";
  if (info.st_uid != geteuid()) return fmt::format("belongs to user {}", info.st_uid);
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fmt::format("can be written by others (mode {:04o})", info.st_mode & 07777);
  }
  return "";
}

// Checks an open descriptor, so that the directory can't be replaced between check and use.
Outcome<void> CheckOwn(const fs::path& dir, bool close_to_readers) {
  struct stat info = {};
  if (lstat(dir.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
    return NotOwn(dir, "is a symbolic link");
  }
  const Descriptor fd(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() < 0 || fstat(fd.get(), &info) != 0) {
    return NotOwn(dir, fmt::format("can't be opened: {}", std::strerror(errno)));
  }
  if (const std::string why = WhyNotOwn(info); !why.empty()) return NotOwn(dir, why);
  if (close_to_readers && fchmod(fd.get(), 0700) != 0) {
    return NotOwn(dir, fmt::format("can't be closed to others: {}", std::strerror(errno)));
  }
  return {};
}

Outcome<void> MakePrivate(const fs::path& dir) {
  std::error_code error;
  fs::create_directories(dir.parent_path(), error);
  if (!error && mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
    error.assign(errno, std::generic_category());
  }
  if (!error) return CheckOwn(dir, true);
  return Fail(ExitCode::kMachineLacks,
              fmt::format("run directory {} can't be made: {}", dir.string(), error.message()));
}

// What a directory holds besides logs of an earlier run, if others may read it; empty: nothing.
std::string WhatOthersRead(const fs::path& dir) {
  struct stat info = {};
  constexpr mode_t kReaders = S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH;
  if (stat(dir.c_str(), &info) != 0 || !WhyNotOwn(info).empty() || (info.st_mode & kReaders) == 0)
    return "";
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(dir, ignored))
    if (entry.path().filename() != "logs") return entry.path().filename().string();
  return "";
}

// A directory that the user has named may contain other files: none may be there that a run would
// overwrite and remove, unless a killed run has left them, and none that others may read, because a
// run closes its directory to them.
Outcome<void> CheckFree(const fs::path& dir) {
  std::error_code ignored;
  if (fs::exists(dir / kRunLock, ignored)) return {};
  for (const char* name : kRunFiles) {
    if (!fs::exists(fs::symlink_status(dir / name, ignored))) continue;
    return Fail(ExitCode::kUsage,
                fmt::format("run directory {} has a file or folder \"{}\" that is no run's, and a "
                            "run would take it away: name another with --run-dir",
                            dir.string(), name));
  }
  if (const std::string read = WhatOthersRead(dir); !read.empty())
    return Fail(ExitCode::kUsage,
                fmt::format("run directory {0} holds other files (\"{1}\") that other users may "
                            "read, and a run would close it to them: name another with --run-dir, "
                            "or close it yourself with `chmod 700 {0}`",
                            dir.string(), read));
  return {};
}

}  // namespace

fs::path RunsFolder(const RunPaths& paths) {
  // Not $XDG_RUNTIME_DIR: it is removed when the user's last session ends, and runs and nodes must
  // outlive that. The names are short because of the sockets below (kLongestRunDir).
  if (paths.of_nodes) return fs::path("/tmp") / fmt::format("ring-nodes-{}", getuid());
  std::error_code ignored;
  const fs::path place = paths.runs.empty() ? "/tmp" : fs::absolute(paths.runs, ignored);
  return place / fmt::format("ringmaster-{}", getuid());
}

Outcome<RunDirectory::Locks> RunDirectory::TakeLocks(const fs::path& dir) {
  std::error_code ignored;
  const fs::path lock = dir / kRunLock;
  const bool was_there = fs::exists(lock, ignored);
  int fd = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    return Fail(ExitCode::kMachineLacks, fmt::format("run directory {} can't be written: {}",
                                                     dir.string(), std::strerror(errno)));
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    close(fd);
    if (error != EWOULDBLOCK) {
      if (!was_there) fs::remove(lock, ignored);  // it would look like that of a killed run
      return NotLocked(dir, error);
    }
    return Fail(ExitCode::kUsage,
                fmt::format("another run is alive in {}: name another --run-dir", dir.string()));
  }
  const int directory = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) (void)flock(directory, LOCK_SH | LOCK_NB);
  return Locks{fd, directory};
}

Outcome<RunDirectory> RunDirectory::Create(const fs::path& named, const RunPaths& paths,
                                           const std::string& run_id) {
  fs::path path = named;
  if (path.empty()) path = paths.run_dir;
  bool ours = path.empty();
  if (ours) {
    if (auto made = MakePrivate(RunsFolder(paths)); !made) return tl::unexpected(made.error());
    path = RunsFolder(paths) / run_id;
  }
  std::error_code error;
  path = WithoutSlash(fs::absolute(path, error).lexically_normal());
  if (path.string().size() > kLongestRunDir) {
    return Fail(
        ExitCode::kUsage,
        fmt::format("run directory {} is too long by {} characters{}: unix sockets below it "
                    "need a path of at most {}",
                    path.string(), path.string().size() - kLongestRunDir,
                    ours && !paths.runs.empty() ? " (it is below $RINGMASTER_RUNS)" : "",
                    kLongestRunDir));
  }
  if (auto free = CheckFree(path); !free) return tl::unexpected(free.error());
  auto locks = MakePrivate(path).and_then([&] { return TakeLocks(path); });
  if (!locks) {
    if (ours) fs::remove(path, error);  // if it is empty
    // A path that the user has named could have been another one.
    const ExitCode code = named.empty() ? locks.error().code : ExitCode::kUsage;
    return Fail(code, locks.error().message);
  }
  return RunDirectory(path, ours, *locks);
}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)), ours_(other.ours_), locks_(std::exchange(other.locks_, {})) {}

RunDirectory::~RunDirectory() {
  for (const int fd : {locks_.file, locks_.directory}) {
    if (fd >= 0) close(fd);
  }
}

void RunDirectory::Clean(const fs::path& path, bool ours, bool keep) {
  std::error_code ignored;
  if (ours && !keep) {
    fs::remove_all(path, ignored);
    fs::remove(path.parent_path(), ignored);  // succeeds only for the last run
    return;
  }
  // Removes a key to a server that is gone, and unused sockets.
  for (const char* name : kRunFiles) fs::remove_all(path / name, ignored);
  fs::remove(path / kRunLock, ignored);
}

namespace {

// Whether this is a directory in which there is nothing but what a run leaves. The folder of all
// runs may be below a directory that the user has named.
bool IsRun(const fs::path& path) {
  std::error_code error;
  if (!CheckOwn(path, false)) return false;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename();
    const bool ours =
        name == "logs" || name == kRunLock ||
        std::find(std::begin(kRunFiles), std::end(kRunFiles), name) != std::end(kRunFiles);
    if (!ours) return false;
  }
  return !error;
}

// Newest first.
std::vector<fs::path> EndedRuns(const RunPaths& paths) {
  std::error_code ignored;
  std::vector<std::pair<fs::file_time_type, fs::path>> ended;
  for (const auto& entry : fs::directory_iterator(RunsFolder(paths), ignored)) {
    if (IsRun(entry.path()) && HasEnded(entry.path()))
      ended.emplace_back(entry.last_write_time(ignored), entry.path());
  }
  std::sort(ended.rbegin(), ended.rend());
  std::vector<fs::path> runs;
  for (auto& [at, path] : ended) runs.push_back(std::move(path));
  return runs;
}

}  // namespace

void RunDirectory::RemoveOld(const RunPaths& paths, size_t keep) {
  std::error_code ignored;
  if (!CheckOwn(RunsFolder(paths))) return;
  const auto ended = EndedRuns(paths);
  for (size_t i = keep; i < ended.size(); ++i) fs::remove_all(ended[i], ignored);
}

fs::path LogsOfLastRun(const RunPaths& paths) {
  for (const fs::path& run : EndedRuns(paths)) {
    std::error_code ignored;
    if (CheckOwn(run) && fs::is_directory(run / "logs", ignored)) return run / "logs";
  }
  return "";
}

Outcome<void> CheckSpace(const fs::path& dir, std::uintmax_t least_bytes) {
  struct statvfs info = {};
  if (statvfs(dir.c_str(), &info) != 0) return {};
  const std::uintmax_t bytes = std::uintmax_t{info.f_bavail} * info.f_frsize;
  const bool files = info.f_files == 0 || info.f_favail > 0;  // some file systems count none
  if (bytes >= least_bytes && files) return {};
  return Fail(ExitCode::kMachineLacks,
              fmt::format("the file system of {} is full: {} KiB are free{}, and at least {} KiB "
                          "are needed. Make room there, or take another place with --run-dir or "
                          "$RINGMASTER_RUNS",
                          dir.string(), bytes / 1024, files ? "" : " but no file more",
                          least_bytes / 1024));
}

bool IsThere(const fs::path& run_dir) {
  // Whoever still writes may have made the folder anew, but nobody makes the lock anew.
  return access((run_dir / kRunLock).c_str(), F_OK) == 0 || errno != ENOENT;
}

std::string WhereLogsAre(const fs::path& run_dir) {
  if (IsThere(run_dir)) return "All logs: " + (run_dir / "logs").string();
  return fmt::format("The logs are gone: {} was removed while the run went on", run_dir.string());
}

Outcome<void> CheckOwn(const fs::path& dir) { return CheckOwn(WithoutSlash(dir), false); }

Outcome<bool> AskAlive(const fs::path& run_dir) {
  const Descriptor fd(open((run_dir / kRunLock).c_str(), O_RDWR | O_CLOEXEC));
  if (fd.get() < 0 || flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return false;
  if (errno == EWOULDBLOCK) return true;
  return NotLocked(run_dir, errno);
}

bool IsAlive(const fs::path& run_dir) { return AskAlive(run_dir).value_or(false); }

bool HasEnded(const fs::path& run_dir) { return !AskAlive(run_dir).value_or(true); }

namespace {

// Those of earlier versions are in $XDG_RUNTIME_DIR.
std::vector<fs::path> FoldersOfRuns(const RunPaths& paths) {
  std::vector<fs::path> folders = {RunsFolder(paths)};
  if (!paths.of_nodes && !paths.runtime_dir.empty())
    folders.push_back(paths.runtime_dir / "ringmaster");
  return folders;
}

}  // namespace

Outcome<std::vector<fs::path>> LivingRuns(const RunPaths& paths) {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, fs::path>> alive;
  for (const fs::path& folder : FoldersOfRuns(paths)) {
    if (fs::symlink_status(folder, error).type() == fs::file_type::not_found) continue;
    if (auto own = CheckOwn(folder); !own) {
      if (folder != RunsFolder(paths)) continue;  // it is nobody's runs, or another user's
      return tl::unexpected(own.error());
    }
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (!CheckOwn(entry.path()) || !IsAlive(entry.path())) continue;
      alive.emplace_back(fs::last_write_time(entry.path() / kRunLock, error), entry.path());
    }
  }
  std::sort(alive.rbegin(), alive.rend());
  std::vector<fs::path> runs;
  for (auto& [begun, path] : alive) runs.push_back(std::move(path));
  return runs;
}

}  // namespace ringmaster::cli
