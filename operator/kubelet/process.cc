#include "operator/kubelet/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "common/process/spawn.h"

namespace ringmaster::kubelet {
tl::expected<pid_t, std::string> Spawn(const ProcessSpec& spec) {
  const int log = open(spec.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) {
    return tl::unexpected("log file " + spec.log.string() + ": " + std::strerror(errno));
  }
  const process::SpawnResult spawned =
      process::Spawn({.argv = spec.argv,
                      .env = spec.env,
                      .search_path = false,
                      .working_dir = spec.working_dir.string(),
                      .output = log,
                      .error = log,
                      .isolated = true,
                      .parent_death_signal = spec.parent_death_signal});
  close(log);
  if (spawned.pid >= 0) return spawned.pid;
  std::string what = spawned.step;
  if (what == "exec") what += " " + spec.argv[0];
  if (what == "working directory") what += " " + spec.working_dir.string();
  return tl::unexpected(what + ": " + std::strerror(spawned.error));
}

std::optional<std::filesystem::path> FindProgram(const std::string& name, const std::string& path,
                                                 const std::filesystem::path& working_dir) {
  namespace fs = std::filesystem;
  auto runs = [](const fs::path& file) {
    std::error_code error;
    return fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) {
    fs::path file = working_dir / name;
    return runs(file) ? std::optional(file) : std::nullopt;
  }
  std::istringstream parts(path);
  for (std::string dir; std::getline(parts, dir, ':');) {
    fs::path file = fs::path(dir.empty() ? "." : dir) / name;
    if (runs(file)) return file;
  }
  return std::nullopt;
}

std::vector<pid_t> ProcessesWithEntry(std::string_view entry) {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end;
       it.increment(error)) {
    std::string name = it->path().filename();
    if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); })) {
      continue;
    }
    std::ifstream file(it->path() / "environ", std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    for (size_t at = text.find(entry); at != std::string::npos; at = text.find(entry, at + 1)) {
      size_t after = at + entry.size();
      if ((at == 0 || text[at - 1] == '\0') && (after == text.size() || text[after] == '\0')) {
        found.push_back(std::stoi(name));
        break;
      }
    }
  }
  return found;
}

void KillAll(pid_t leader, std::string_view entry) {
  if (leader > 0) kill(-leader, SIGKILL);
  std::set<pid_t> killed;
  // A process may fork while we look; a killed one takes a moment to lose its environment. 2 s are
  // plenty for both.
  for (int round = 0; round < 200; ++round) {
    std::vector<pid_t> left = ProcessesWithEntry(entry);
    for (pid_t pid : left) {
      kill(pid, SIGKILL);
      if (pid != leader) killed.insert(pid);  // the leader's status belongs to whoever waits for it
    }
    // Those that were orphaned to us would stay zombies.
    std::erase_if(killed, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
    if (left.empty() && killed.empty()) return;
    if (round > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void ReapGroup(pid_t leader) {
  siginfo_t info{};
  while (waitid(P_PGID, leader, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 &&
         info.si_pid != leader) {
    waitpid(info.si_pid, nullptr, WNOHANG);
    info = {};
  }
}

}  // namespace ringmaster::kubelet
