#include "sidecar/launcher/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>

#include "common/process/spawn.h"

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

using ChildrenByParent = std::multimap<pid_t, pid_t>;

// The children of each process, of all living processes that can be seen.
ChildrenByParent ReadChildren() {
  ChildrenByParent children;
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
int KillTree(const ChildrenByParent& children, pid_t root) {
  std::vector<pid_t> found = {root};
  for (size_t i = 0; i < found.size(); ++i) {
    kill(found[i], SIGKILL);
    auto [first, last] = children.equal_range(found[i]);
    for (auto it = first; it != last; ++it) found.push_back(it->second);
  }
  return static_cast<int>(found.size());
}

// 0: it can't be told.
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

}  // namespace

std::vector<std::string> MergeEnvironment(const std::vector<std::string>& base,
                                          const std::vector<std::string>& extra) {
  std::vector<std::string> merged = extra;
  for (const std::string& entry : base) {
    bool replaced = false;
    for (const std::string& by : extra) replaced = replaced || SameName(entry, by);
    if (!replaced) merged.push_back(entry);
  }
  return merged;
}

StartedProcess StartProcess(const std::vector<std::string>& command,
                            const std::vector<std::string>& environment,
                            const std::vector<std::string>& extra, int family, int output,
                            int error) {
  std::vector<std::string> own = extra;
  own.push_back(std::string(kFamilyVariable) + "=" + std::to_string(family));
  const process::SpawnResult spawned = process::Spawn({.argv = command,
                                                       .env = MergeEnvironment(environment, own),
                                                       .output = output,
                                                       .error = error,
                                                       .parent_death_signal = SIGKILL});
  if (spawned.pid >= 0) return {spawned.pid, "", 0};
  const std::string what =
      spawned.step == "exec" ? "cannot start '" + command[0] + "'" : spawned.step;
  return {-1, what + ": " + std::strerror(spawned.error), spawned.error};
}

char StateOfProcess(pid_t pid) {
  char state = 'X';
  if (pid > 0) ParentOf(pid, &state);
  return state;
}

int KillStrays(const std::set<pid_t>& workers, const std::set<int>& families, bool unmarked) {
  int killed = 0;
  ChildrenByParent children = ReadChildren();
  auto [first, last] = children.equal_range(getpid());
  for (auto it = first; it != last; ++it) {
    if (workers.count(it->second) > 0) continue;
    const int family = FamilyOf(it->second);
    if (family == 0 ? !unmarked : families.count(family) > 0) continue;
    killed += KillTree(children, it->second);
  }
  return killed;
}

void KillEverything() {
  const auto deadline = Clock::now() + std::chrono::seconds(2);
  while (Clock::now() < deadline) {
    KillStrays({}, {}, true);
    pid_t pid;
    while ((pid = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (pid < 0 && errno == ECHILD) return;
    usleep(1000);
  }
}

}  // namespace ringmaster::launcher
