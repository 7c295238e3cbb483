#include "operator/cli/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace ringmaster::cli {
namespace fs = std::filesystem;
namespace {

constexpr char kLock[] = "run.lock";
// pods/<uid>/<volume>/<socket> below it has to fit in the 107 bytes of a unix socket's path.
constexpr size_t kLongestRunDir = 48;

Outcome<int> TakeLock(const fs::path& dir) {
  int fd = open((dir / kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    return Fail(ExitCode::kMachineLacks, fmt::format("run directory {} can't be written: {}",
                                                     dir.string(), std::strerror(errno)));
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    close(fd);
    return Fail(ExitCode::kUsage,
                fmt::format("another run is alive in {}: name another --run-dir", dir.string()));
  }
  return fd;
}

Outcome<void> MakePrivate(const fs::path& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (!error) fs::permissions(dir, fs::perms::owner_all, error);
  if (!error) return {};
  return Fail(ExitCode::kMachineLacks,
              fmt::format("run directory {} can't be made: {}", dir.string(), error.message()));
}

}  // namespace

fs::path RunsFolder(const RunPaths& paths) {
  if (!paths.runtime_dir.empty()) return paths.runtime_dir / "ringmaster";
  return fs::path("/tmp") / fmt::format("ringmaster-{}", getuid());
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
  path = fs::absolute(path, error).lexically_normal();
  if (path.string().size() > kLongestRunDir) {
    return Fail(ExitCode::kUsage,
                fmt::format("run directory {} is too long by {} characters: unix sockets below it "
                            "need a path of at most {}",
                            path.string(), path.string().size() - kLongestRunDir, kLongestRunDir));
  }
  if (auto made = MakePrivate(path); !made) return tl::unexpected(made.error());
  auto lock = TakeLock(path);
  if (!lock) return tl::unexpected(lock.error());
  return RunDirectory(path, ours, *lock);
}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)),
      ours_(other.ours_),
      lock_fd_(std::exchange(other.lock_fd_, -1)) {}

RunDirectory::~RunDirectory() {
  if (lock_fd_ >= 0) close(lock_fd_);
}

void RunDirectory::Clean(const fs::path& path, bool ours, bool keep) {
  std::error_code ignored;
  if (ours && !keep) {
    fs::remove_all(path, ignored);
    fs::remove(path.parent_path(), ignored);  // succeeds for the last run only
    return;
  }
  // A key to a server that is gone, and sockets nobody listens on.
  for (const char* name : {"kubeconfig", "operator.sock", "pods", "nodes", kLock})
    fs::remove_all(path / name, ignored);
}

bool IsAlive(const fs::path& run_dir) {
  int fd = open((run_dir / kLock).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  bool free = flock(fd, LOCK_EX | LOCK_NB) == 0;
  close(fd);
  return !free;
}

Outcome<fs::path> NewestLivingRun(const RunPaths& paths) {
  if (!paths.run_dir.empty() && IsAlive(paths.run_dir)) return paths.run_dir;
  std::error_code error;
  std::optional<std::pair<fs::file_time_type, fs::path>> newest;
  for (const auto& entry : fs::directory_iterator(RunsFolder(paths), error)) {
    if (!IsAlive(entry.path())) continue;
    auto begun = fs::last_write_time(entry.path() / kLock, error);
    if (!newest || begun > newest->first) newest = {begun, entry.path()};
  }
  if (newest) return newest->second;
  return Fail(ExitCode::kUsage,
              "no run is alive on this machine. Start one with `ringmaster run JOB.yaml`, name "
              "its directory with --run DIR, or a cluster with --kubeconfig FILE");
}

}  // namespace ringmaster::cli
