#include "sidecar/launcher/log.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ringmaster::launcher {
namespace {

constexpr char kLineBegins[] = "ringmaster-launcher: ";
constexpr size_t kMostWaiting = 64 * 1024;

bool WritableWithin(int fd, int milliseconds) {
  pollfd wait{fd, POLLOUT, 0};
  return poll(&wait, 1, milliseconds) == 1;
}

LogBacklog& StandardError() {
  static LogBacklog backlog(STDERR_FILENO);
  return backlog;
}

}  // namespace

void LogBacklog::Add(const std::string& line) {
  Pass();
  if (!waiting_.empty() && waiting_.size() + line.size() > kMostWaiting) {
    ++lost_;
    return;
  }
  if (lost_ > 0) {
    waiting_ += kLineBegins + ("lines of this log are lost count=" + std::to_string(lost_)) + "\n";
    lost_ = 0;
  }
  waiting_ += line + "\n";
  Pass();
}

// A pipe that is writable takes so much without waiting. What can't be written at all is lost.
void LogBacklog::Pass() {
  size_t written = 0;
  while (written < waiting_.size() && WritableWithin(fd_, 0)) {
    const size_t piece = std::min<size_t>(waiting_.size() - written, PIPE_BUF);
    const ssize_t put = write(fd_, waiting_.data() + written, piece);
    if (put < 0 && (errno == EINTR || errno == EAGAIN)) break;
    written += put < 0 ? piece : static_cast<size_t>(put);
  }
  waiting_.erase(0, written);
}

void LogBacklog::Finish(std::chrono::steady_clock::time_point deadline) {
  for (Pass(); !waiting_.empty(); Pass()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return;
    WritableWithin(fd_, static_cast<int>(left.count()));
  }
}

void Log(const std::string& message,
         std::initializer_list<std::pair<const char*, std::string>> fields) {
  std::string line = kLineBegins + message;
  for (const auto& [key, value] : fields) {
    line += std::string(" ") + key + "=";
    const bool quote = value.find(' ') != std::string::npos;
    line += quote ? "\"" + value + "\"" : value;
  }
  StandardError().Add(line);
}

void LogError(const std::string& message,
              std::initializer_list<std::pair<const char*, std::string>> fields) {
  Log("error: " + message, fields);
}

int LogWaitsFor() { return StandardError().empty() ? -1 : StandardError().fd(); }

void PassLog() { StandardError().Pass(); }

void FinishLog(std::chrono::steady_clock::time_point deadline) { StandardError().Finish(deadline); }

}  // namespace ringmaster::launcher
