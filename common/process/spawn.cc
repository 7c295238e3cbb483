#include "common/process/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/process/file_limit.h"

namespace ringmaster::process {
namespace {

struct ChildFailure {
  int error = 0;
  char step[32] = {};
};

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Tells the parent why the child can't become the program. All its calls are safe after a fork.
[[noreturn]] void Fail(int report, const char* step) {
  ChildFailure failure{.error = errno};
  std::strncpy(failure.step, step, sizeof failure.step - 1);
  [[maybe_unused]] ssize_t written = write(report, &failure, sizeof failure);
  _exit(127);
}

void ResetSignals(bool all) {
  if (all) {
    for (int s = 1; s < NSIG; ++s) signal(s, SIG_DFL);
  }
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

void ConnectFiles(const SpawnSpec& spec, int report) {
  // Without O_CLOEXEC: the descriptor may be 0 itself, and then it must stay open at exec.
  const int null = open("/dev/null", O_RDONLY);
  if (null < 0) Fail(report, "open /dev/null");
  if (dup2(null, STDIN_FILENO) < 0) Fail(report, "dup2");
  if (null > STDERR_FILENO) close(null);
  if (spec.output >= 0 && dup2(spec.output, STDOUT_FILENO) < 0) Fail(report, "dup2");
  if (spec.error >= 0 && dup2(spec.error, STDERR_FILENO) < 0) Fail(report, "dup2");
  if (spec.isolated) close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
}

[[noreturn]] void BecomeProgram(const SpawnSpec& spec, char* const* argv, char* const* env,
                                pid_t parent, int report) {
  setpgid(0, 0);
  if (spec.parent_death_signal != 0) {
    prctl(PR_SET_PDEATHSIG, spec.parent_death_signal);
    if (getppid() != parent) _exit(127);  // the parent died before prctl
  }
  ResetSignals(spec.isolated);
  ConnectFiles(spec, report);
  if (!spec.working_dir.empty() && chdir(spec.working_dir.c_str()) != 0)
    Fail(report, "working directory");
  // Nothing is opened from here on: more files may be open than the limit of the user allows.
  RestoreFileLimit();
  if (spec.search_path) {
    execvpe(argv[0], argv, env);
  } else {
    execve(argv[0], argv, env);
  }
  Fail(report, "exec");
}

// Waits until the child has become the program, which closes its end of the pipe, or has failed.
ChildFailure ReadReport(int report) {
  ChildFailure failure;
  ssize_t got = 0;
  do {
    got = read(report, &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  return got == sizeof failure ? failure : ChildFailure{};
}

}  // namespace

SpawnResult Spawn(const SpawnSpec& spec) {
  const std::vector<char*> argv = Pointers(spec.argv), env = Pointers(spec.env);
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return {-1, errno, "pipe"};
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) BecomeProgram(spec, argv.data(), env.data(), parent, report[1]);
  const int fork_error = errno;
  close(report[1]);
  const ChildFailure failure = pid < 0 ? ChildFailure{} : ReadReport(report[0]);
  close(report[0]);
  if (pid < 0) return {-1, fork_error, "fork"};
  setpgid(pid, pid);  // the child does it, too, so that neither has to wait for the other
  if (failure.error == 0) return {pid, 0, ""};
  waitpid(pid, nullptr, 0);
  return {-1, failure.error, failure.step};
}

}  // namespace ringmaster::process
