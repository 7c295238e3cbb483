// What a schedule of a simulator has shown: what did not hold, what it has covered, and, for
// people, everything that happened in it. `Coverage` and `Outcome` are the simulator's.
//
// Owner: the simulator's World. Plain data of one schedule; one thread.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <utility>

namespace ringmaster::support {

template <typename Coverage, typename Outcome>
class Journal {
 public:
  // `time`: since the schedule's begin, in ms. `trace`: every event is appended to it; null: nobody
  // reads it.
  Journal(std::function<double()> time, std::string* trace)
      : time_(std::move(time)), trace_(trace) {}

  // Something that must hold does not. Only the first counts.
  void Fail(const std::string& what) {
    if (violation_.empty()) violation_ = what;
    Trace([&] { return "VIOLATION " + what; });
  }
  bool failed() const { return !violation_.empty(); }

  template <typename Text>
  void Trace(Text text) {
    if (trace_ == nullptr) return;
    char time[32];
    std::snprintf(time, sizeof time, "%10.3f ms  ", time_());
    *trace_ += time + std::string(text()) + "\n";
  }

  Coverage& coverage() { return coverage_; }
  Outcome outcome() const { return {violation_, coverage_}; }

 private:
  const std::function<double()> time_;
  std::string* const trace_;
  std::string violation_;
  Coverage coverage_;
};

}  // namespace ringmaster::support
