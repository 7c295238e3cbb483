#include "operator/cli/ssh.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <functional>
#include <iterator>

#include "common/process/spawn.h"

extern char** environ;

namespace ringmaster::cli {
namespace {

// The output of a process, in memory.
class Output {
 public:
  Output() : fd_(memfd_create("output", MFD_CLOEXEC)) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }
  std::string Text() const {
    std::string text(kMostOutput, '\0');
    const ssize_t n = pread(fd_, text.data(), text.size(), 0);
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return text;
  }

 private:
  const int fd_;
};

// A file that becomes readable when `stop` is requested.
class StopFile {
 public:
  explicit StopFile(const std::stop_token& stop)
      : fd_(eventfd(0, EFD_CLOEXEC)), callback_(stop, [fd = fd_] {
          const uint64_t one = 1;
          [[maybe_unused]] const ssize_t written = write(fd, &one, sizeof one);
        }) {}
  StopFile(const StopFile&) = delete;
  StopFile& operator=(const StopFile&) = delete;
  ~StopFile() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  const int fd_;
  const std::stop_callback<std::function<void()>> callback_;  // destroyed before the file
};

enum class End { kOfItself, kTooLate, kStopped };

// A process that has not ended by itself is killed with its process group.
End AwaitEnd(pid_t pid, std::chrono::milliseconds patience, const std::stop_token& stop,
             int* status) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + patience;
  const StopFile stopped(stop);
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  pollfd either[] = {{fd, POLLIN, 0}, {stopped.fd(), POLLIN, 0}};
  int ready = 0;
  do {  // a signal to this process interrupts the call
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    ready = poll(either, 2, static_cast<int>(std::max<int64_t>(0, left.count())));
  } while (ready < 0 && errno == EINTR);
  if (fd >= 0) close(fd);
  const End end = either[0].revents != 0   ? End::kOfItself
                  : either[1].revents != 0 ? End::kStopped
                                           : End::kTooLate;
  if (end != End::kOfItself) kill(-pid, SIGKILL);
  while (waitpid(pid, status, 0) < 0 && errno == EINTR) {
  }
  return end;
}

std::vector<std::string> ChosenWords(const SshOptions& options) {
  std::vector<std::string> words;
  if (options.port > 0) words.insert(words.end(), {"-p", std::to_string(options.port)});
  if (!options.identity_file.empty())
    words.insert(words.end(), {"-i", options.identity_file.string()});
  return words;
}

}  // namespace

std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    // Within quotes `!` is csh's history, and a backslash means something to fish.
    if (c == '\'' || c == '!' || c == '\\')
      quoted += std::string("'\\") + c + "'";
    else
      quoted += c;
  }
  return quoted + "'";
}

std::vector<std::string> SshWords(const SshOptions& options, const std::string& host,
                                  const std::string& script) {
  if (host.empty()) return {"sh", "-c", script};
  // -4, because certificates contain IPv4 addresses.
  std::vector<std::string> words = {"ssh", "-4", "-T", "-x"};
  for (const char* option : {"BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=5",
                             "ServerAliveCountMax=4", "LogLevel=ERROR"}) {
    words.insert(words.end(), {"-o", option});
  }
  const auto chosen = ChosenWords(options);
  words.insert(words.end(), chosen.begin(), chosen.end());
  // The user's shell on that machine may not be a POSIX shell.
  words.insert(words.end(), {"--", host, "exec sh -c " + Quoted(script)});
  return words;
}

std::string SshLine(const SshOptions& options, const std::string& host,
                    const std::string& command) {
  std::string line = "ssh ";
  for (const std::string& word : ChosenWords(options)) {
    const bool plain = std::all_of(word.begin(), word.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || std::strchr("-_./", c) != nullptr;
    });
    line += (plain ? word : Quoted(word)) + " ";
  }
  return line + host + " " + command;
}

bool StaysSo(const std::string& said) {
  constexpr const char* kCauses[] = {"Host key verification failed",
                                     "REMOTE HOST IDENTIFICATION HAS CHANGED",
                                     "Permission denied",
                                     "Too many authentication failures",
                                     "Name or service not known",
                                     "No address associated with hostname"};
  return std::any_of(std::begin(kCauses), std::end(kCauses),
                     [&](const char* cause) { return said.find(cause) != std::string::npos; });
}

Outcome<SshAnswer> Do(const std::vector<std::string>& words, const std::filesystem::path& input,
                      std::chrono::milliseconds patience, const std::stop_token& stop) {
  const Output out, error;
  process::SpawnSpec spec;
  spec.argv = {"sh", "-c", "exec \"$@\" <\"$0\"", input.empty() ? "/dev/null" : input.string()};
  spec.argv.insert(spec.argv.end(), words.begin(), words.end());
  for (char** entry = environ; *entry != nullptr; ++entry) spec.env.emplace_back(*entry);
  spec.output = out.fd();
  spec.error = error.fd();
  spec.isolated = true;
  const process::SpawnResult started = process::Spawn(spec);
  if (started.pid < 0) {
    return Fail(ExitCode::kMachineLacks, fmt::format("{} can't be run: {}: {}", words.front(),
                                                     started.step, std::strerror(started.error)));
  }
  int status = 0;
  const End end = AwaitEnd(started.pid, patience, stop, &status);
  if (end == End::kStopped) return Fail(ExitCode::kInterrupted, "interrupted");
  if (end == End::kTooLate) {
    return Fail(ExitCode::kMachineLacks,
                fmt::format("{} had not ended after {} s; it has said: {}", words.front(),
                            patience.count() / 1000, error.Text()));
  }
  return SshAnswer{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), out.Text(),
                   error.Text()};
}

}  // namespace ringmaster::cli
