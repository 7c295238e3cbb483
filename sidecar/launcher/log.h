// The launcher's log: one line on standard error, a constant message and key=value pairs. What is
// wrong begins with "error: "; the operator tells people no other line of the launcher's
// (docs/contracts.md).
//
// The launcher never waits for whoever reads it: lines that are not taken at once are kept, and
// handed on by PassLog. Thread rule: the launcher's one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>

namespace ringmaster::launcher {

void Log(const std::string& message,
         std::initializer_list<std::pair<const char*, std::string>> fields = {});
void LogError(const std::string& message,
              std::initializer_list<std::pair<const char*, std::string>> fields = {});

// Where lines wait to be written; -1: none does.
int LogWaitsFor();
// Hands on what can be written without waiting.
void PassLog();
// The process ends: the rest, as far as the reader takes it until the deadline.
void FinishLog(std::chrono::steady_clock::time_point deadline);

// What the functions above do for standard error.
class LogBacklog {
 public:
  explicit LogBacklog(int fd) : fd_(fd) {}

  // A line without its end. If too much waits the line is lost, and the next one that is kept says
  // how many were.
  void Add(const std::string& line);
  void Pass();
  void Finish(std::chrono::steady_clock::time_point deadline);
  bool empty() const { return waiting_.empty(); }
  int fd() const { return fd_; }

 private:
  const int fd_;
  std::string waiting_;  // whole lines, but for what was written of the first one
  size_t lost_ = 0;      // lines, since one was kept
};

}  // namespace ringmaster::launcher
