#include "operator/local/process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

namespace ringmaster::local {
namespace {

struct ChildFailure {
  int error;
  char step[32];
};

// What the child tells through the pipe when it can't become the program. Only calls that are
// allowed after fork.
[[noreturn]] void Fail(int pipe, const char* step) {
  ChildFailure failure{errno, {}};
  std::strncpy(failure.step, step, sizeof failure.step - 1);
  (void)!write(pipe, &failure, sizeof failure);
  _exit(127);
}

[[noreturn]] void Become(const ProcessSpec& spec, char* const* argv, char* const* env, int log,
                         int pipe, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, spec.parent_death_signal);
  if (getppid() != parent) _exit(127);  // died before the request was in place
  for (int s = 1; s < NSIG; ++s) signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0) Fail(pipe, "open /dev/null");
  if (dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) Fail(pipe, "dup2");
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  if (chdir(spec.working_dir.c_str()) != 0) Fail(pipe, "working directory");
  execve(argv[0], argv, env);
  Fail(pipe, "exec");
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

tl::expected<pid_t, std::string> Spawn(const ProcessSpec& spec) {
  int log = open(spec.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) {
    return tl::unexpected("log file " + spec.log.string() + ": " + std::strerror(errno));
  }
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) {
    int error = errno;
    close(log);
    return tl::unexpected(std::string("pipe: ") + std::strerror(error));
  }
  std::vector<char*> argv = Pointers(spec.argv), env = Pointers(spec.env);
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid == 0) Become(spec, argv.data(), env.data(), log, pipe[1], parent);
  int fork_error = errno;
  close(log);
  close(pipe[1]);
  if (pid < 0) {
    close(pipe[0]);
    return tl::unexpected(std::string("fork: ") + std::strerror(fork_error));
  }
  ChildFailure failure;
  ssize_t n;
  do {
    n = read(pipe[0], &failure, sizeof failure);
  } while (n < 0 && errno == EINTR);
  close(pipe[0]);
  if (n == sizeof failure) {
    waitpid(pid, nullptr, 0);
    std::string what = failure.step;
    what += what == "exec" ? " " + spec.argv[0] : " " + spec.working_dir.string();
    return tl::unexpected(what + ": " + std::strerror(failure.error));
  }
  return pid;
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

}  // namespace ringmaster::local
