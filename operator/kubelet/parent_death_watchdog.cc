#include "operator/kubelet/parent_death_watchdog.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "operator/kubelet/run_files.h"

namespace ringmaster::kubelet {
namespace {

// Everything below runs in a child of a process with many threads: system calls and the stack only,
// no allocation.

struct DirEntry {  // linux_dirent64
  ino64_t inode;
  off64_t offset;
  unsigned short length;
  unsigned char type;
  char name[];
};

// Calls f(name) for each entry of the directory.
template <class F>
void ForEachEntry(int dir, F f) {
  alignas(DirEntry) char buffer[4096];
  long n;
  while ((n = syscall(SYS_getdents64, dir, buffer, sizeof buffer)) > 0) {
    for (long at = 0; at < n;) {
      auto* entry = reinterpret_cast<DirEntry*>(buffer + at);
      if (std::strcmp(entry->name, ".") != 0 && std::strcmp(entry->name, "..") != 0) f(entry->name);
      at += entry->length;
    }
  }
}

bool HasEntry(int proc, const char* pid, const char* entry, size_t size) {
  char path[64] = {};
  std::strncpy(path, pid, 20);
  std::strcat(path, "/environ");
  int file = openat(proc, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  // `at`: how much of the entry the current variable has matched; npos after a difference.
  constexpr size_t kNo = ~size_t{0};
  size_t at = 0;
  char buffer[4096];
  ssize_t n;
  bool found = false;
  while (!found && (n = read(file, buffer, sizeof buffer)) > 0) {
    for (ssize_t i = 0; i < n && !found; ++i) {
      if (buffer[i] == '\0') {
        found = at == size;
        at = 0;
      } else if (at != kNo) {
        at = at < size && buffer[i] == entry[at] ? at + 1 : kNo;
      }
    }
  }
  close(file);
  return found;
}

int KillMarked(const char* entry, size_t size) {
  int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return 0;
  int found = 0;
  ForEachEntry(proc, [&](const char* name) {
    int pid = 0;
    for (const char* c = name; *c; ++c) {
      if (*c < '0' || *c > '9') return;
      pid = pid * 10 + (*c - '0');
    }
    if (HasEntry(proc, name, entry, size)) {
      kill(pid, SIGKILL);
      ++found;
    }
  });
  close(proc);
  return found;
}

void RemoveTree(int parent, const char* name, int depth) {
  if (unlinkat(parent, name, 0) == 0 || errno == ENOENT || depth > 32) return;
  int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dir >= 0) {
    ForEachEntry(dir, [&](const char* child) { RemoveTree(dir, child, depth + 1); });
    close(dir);
  }
  unlinkat(parent, name, AT_REMOVEDIR);
}

// The logs stay: they may say why the run was killed.
void RemoveRunFiles(const char* run_dir) {
  int dir = open(run_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dir < 0) return;
  for (const char* name : kRunFiles) RemoveTree(dir, name, 0);
  unlinkat(dir, kRunLock, 0);
  close(dir);
}

[[noreturn]] void Watch(int pipe, const char* entry, const char* run_dir) {
  setsid();
  prctl(PR_SET_NAME, "ringmaster-grd");
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  dup2(pipe, 3);
  int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  close_range(4, ~0U, 0);
  if (chdir("/") != 0) _exit(1);
  char word;
  ssize_t n;
  do {
    n = read(3, &word, 1);
  } while (n < 0 && errno == EINTR);
  if (n == 1) _exit(0);  // dismissed
  size_t size = std::strlen(entry);
  for (int round = 0, clean = 0; round < 200 && clean < 2; ++round) {
    clean = KillMarked(entry, size) == 0 ? clean + 1 : 0;
    timespec pause{0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
  RemoveRunFiles(run_dir);
  _exit(0);
}

}  // namespace

tl::expected<std::unique_ptr<ParentDeathWatchdog>, std::string> ParentDeathWatchdog::Start(
    const std::string& entry, const std::filesystem::path& run_dir) {
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) {
    return tl::unexpected(std::string("pipe: ") + std::strerror(errno));
  }
  std::string dir = std::filesystem::absolute(run_dir).string();
  pid_t pid = fork();
  if (pid == 0) Watch(pipe[0], entry.c_str(), dir.c_str());
  int error = errno;
  close(pipe[0]);
  if (pid < 0) {
    close(pipe[1]);
    return tl::unexpected(std::string("fork: ") + std::strerror(error));
  }
  return std::unique_ptr<ParentDeathWatchdog>(new ParentDeathWatchdog(pid, pipe[1]));
}

void ParentDeathWatchdog::Dismiss() {
  if (pipe_ < 0) return;
  (void)!write(pipe_, "q", 1);
  close(pipe_);
  pipe_ = -1;
  waitpid(pid_, nullptr, 0);
}

ParentDeathWatchdog::~ParentDeathWatchdog() { Dismiss(); }

}  // namespace ringmaster::kubelet
