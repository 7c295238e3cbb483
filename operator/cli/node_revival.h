// Decides when the node process of one machine of `run --hosts` is started again: it has died or is
// silent, and only the machine itself can tell which. The pauses between two attempts grow; an
// error that only a person can mend is not retried for ever.
//
// Pure. Thread rule: one thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace ringmaster::cli {

class NodeRevival {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // What the run's API server knows about the node.
  enum class Sight {
    kHeard,
    kSilent,  // not heard of for a while
    kGone,    // its process has deleted its object
  };
  // The result of an attempt.
  struct Attempt {
    enum class End { kStarted, kRanAllTheTime, kFailed };
    End end = End::kStarted;
    std::string why;        // for kFailed: the words of ssh or of the process
    bool stays_so = false;  // for kFailed: only a person can change it
  };

  // The node process runs since `now`.
  NodeRevival(std::string host, Time now) : host_(std::move(host)), running_since_(now) {}

  // Returns true if an attempt should begin now; it is in progress until Finish.
  bool Look(Sight sight, Time now);
  void Finish(const Attempt& attempt, Time now);
  // Returns the messages for people since the last call.
  std::vector<std::string> TakeMessages();

 private:
  enum class Stage { kRuns, kWaits, kTries, kGivenUp };

  void Wait(Time now, const std::string& why, const std::string& what);
  void Say(const std::string& what);

  const std::string host_;
  Stage stage_ = Stage::kRuns;
  Time running_since_, next_{};
  int attempts_ = 0;  // since the process last ran for long
  int in_vain_ = 0;   // attempts in a row that failed for a lasting reason
  std::string said_;  // the last message
  std::vector<std::string> messages_;
};

}  // namespace ringmaster::cli
