#include "operator/cli/detach.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ringmaster::cli {
namespace {

// The child's message to its parent: one of these characters, then a text.
constexpr char kReady = 'r';
constexpr char kFailed = 'f';  // followed by the exit code

void WriteAll(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    at += static_cast<size_t>(n);
  }
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer, static_cast<size_t>(n));
  }
}

// Closes all but `report`, whose new descriptor it returns: ssh ends only when no process holds its
// streams, and the shell that was this process before may have left copies of them, as csh does.
int LetGoOfStreams(int report) {
  constexpr int kReport = 3;
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < kReport; ++fd) dup2(null, fd);
  if (report != kReport && dup3(report, kReport, O_CLOEXEC) < 0) return report;
  close_range(kReport + 1, ~0U, 0);
  return kReport;
}

[[noreturn]] void RunInChild(int report, const std::function<Outcome<void>(const SayReady&)>& run) {
  setsid();
  report = LetGoOfStreams(report);
  const auto ready = [&report](const std::string& text) {
    WriteAll(report, kReady + text);
    close(report);
    report = -1;
  };
  const auto outcome = run(ready);
  const int code = outcome ? 0 : static_cast<int>(outcome.error().code);
  if (report >= 0 && !outcome)
    WriteAll(report, std::string{kFailed, static_cast<char>(code)} + outcome.error().message);
  _exit(code);
}

}  // namespace

Outcome<void> RunDetached(const std::function<Outcome<void>(const SayReady& ready)>& run) {
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0)
    return Fail(ExitCode::kMachineLacks, std::string("pipe: ") + std::strerror(errno));
  const pid_t pid = fork();
  if (pid == 0) {
    close(pipe[0]);
    RunInChild(pipe[1], run);
  }
  close(pipe[1]);
  const std::string word = pid > 0 ? ReadAll(pipe[0]) : "";
  close(pipe[0]);
  if (pid < 0) return Fail(ExitCode::kMachineLacks, std::string("fork: ") + std::strerror(errno));
  if (!word.empty() && word[0] == kReady) {
    std::printf("%s\n", word.c_str() + 1);
    std::fflush(stdout);
    return {};
  }
  waitpid(pid, nullptr, 0);
  if (word.size() < 2)
    return Fail(ExitCode::kMachineLacks, "the process ended before it could say why");
  return Fail(static_cast<ExitCode>(word[1]), word.substr(2));
}

}  // namespace ringmaster::cli
