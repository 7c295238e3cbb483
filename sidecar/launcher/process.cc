#include "sidecar/launcher/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>

namespace ringmaster::launcher {
namespace {

using Clock = std::chrono::steady_clock;

std::string ReadAll(const std::string& path) {
  std::string text;
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, n);
  close(fd);
  return text;
}

// Parent and state stand behind the command's name, which may contain anything, brackets too.
pid_t ParentOf(pid_t pid, char* state) {
  std::string stat = ReadAll("/proc/" + std::to_string(pid) + "/stat");
  size_t end = stat.rfind(')');
  if (end == std::string::npos || end + 4 >= stat.size()) return -1;
  *state = stat[end + 2];
  return std::atoi(stat.c_str() + end + 4);
}

using Children = std::multimap<pid_t, pid_t>;

// Who is whose child, of all living processes that can be seen.
Children ReadChildren() {
  Children children;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return children;
  while (dirent* entry = readdir(proc)) {
    pid_t pid = std::atoi(entry->d_name);
    char state = 'Z';
    pid_t parent = pid > 0 ? ParentOf(pid, &state) : -1;
    if (parent > 0 && state != 'Z' && state != 'X') children.emplace(parent, pid);
  }
  closedir(proc);
  return children;
}

// SIGKILLs a process and all below it, parents first so that none starts another.
int KillTree(const Children& children, pid_t root) {
  std::vector<pid_t> found = {root};
  for (size_t i = 0; i < found.size(); ++i) {
    kill(found[i], SIGKILL);
    auto [first, last] = children.equal_range(found[i]);
    for (auto it = first; it != last; ++it) found.push_back(it->second);
  }
  return static_cast<int>(found.size());
}

int FamilyOf(pid_t pid) {
  std::string environment = ReadAll("/proc/" + std::to_string(pid) + "/environ");
  const std::string key = std::string(kFamilyVariable) + "=";
  for (size_t at = 0; at < environment.size();) {
    const char* entry = environment.c_str() + at;
    if (std::strncmp(entry, key.c_str(), key.size()) == 0) return std::atoi(entry + key.size());
    at += std::strlen(entry) + 1;
  }
  return 0;
}

bool SameName(std::string_view a, std::string_view b) {
  return a.substr(0, a.find('=')) == b.substr(0, b.find('='));
}

std::vector<std::string> Merge(const std::vector<std::string>& base,
                               const std::vector<std::string>& extra) {
  std::vector<std::string> merged = extra;
  for (const std::string& entry : base) {
    bool replaced = false;
    for (const std::string& by : extra) replaced = replaced || SameName(entry, by);
    if (!replaced) merged.push_back(entry);
  }
  return merged;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Between fork and exec; tells the parent by `report` why it could not.
[[noreturn]] void BecomeWorker(pid_t launcher, char** argv, char** envp, int report) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(127);  // it died before prctl
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
  if (null > STDERR_FILENO) close(null);
  execvpe(argv[0], argv, envp);
  int error = errno;
  [[maybe_unused]] ssize_t written = write(report, &error, sizeof error);
  _exit(127);
}

}  // namespace

SpawnResult Spawn(const std::vector<std::string>& command,
                  const std::vector<std::string>& environment,
                  const std::vector<std::string>& extra, int family) {
  std::vector<std::string> own = extra;
  own.push_back(std::string(kFamilyVariable) + "=" + std::to_string(family));
  std::vector<std::string> merged = Merge(environment, own);
  std::vector<char*> argv = Pointers(command), envp = Pointers(merged);
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return {-1, std::string("pipe: ") + std::strerror(errno)};
  pid_t launcher = getpid();
  pid_t pid = fork();
  if (pid == 0) BecomeWorker(launcher, argv.data(), envp.data(), report[1]);
  int fork_error = errno;
  close(report[1]);
  int exec_error = 0;
  ssize_t got = pid < 0 ? 0 : read(report[0], &exec_error, sizeof exec_error);
  close(report[0]);
  if (pid < 0) return {-1, std::string("fork: ") + std::strerror(fork_error)};
  setpgid(pid, pid);  // both sides do, so that neither has to wait for the other
  if (got != sizeof exec_error) return {pid, ""};
  waitpid(pid, nullptr, 0);
  return {-1, "cannot start '" + command[0] + "': " + std::strerror(exec_error)};
}

int KillStrays(const std::set<pid_t>& workers, const std::set<int>& families) {
  int killed = 0;
  Children children = ReadChildren();
  auto [first, last] = children.equal_range(getpid());
  for (auto it = first; it != last; ++it) {
    if (workers.count(it->second) > 0 || families.count(FamilyOf(it->second)) > 0) continue;
    killed += KillTree(children, it->second);
  }
  return killed;
}

void KillEverything() {
  const auto deadline = Clock::now() + std::chrono::seconds(2);
  while (Clock::now() < deadline) {
    KillStrays({}, {});
    pid_t pid;
    while ((pid = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (pid < 0 && errno == ECHILD) return;
    usleep(1000);
  }
}

}  // namespace ringmaster::launcher
