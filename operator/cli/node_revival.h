// When the node process of one machine of `run --hosts` is started again: it has died, or nothing
// is heard of it, and only the machine itself can say which. The pauses between two attempts grow;
// what only a person can mend is not tried for ever.
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
  // What the run's API server knows of the node.
  enum class Sight {
    kHeard,
    kSilent,  // nothing for a while
    kGone,    // its process has taken its object away
  };
  // How an attempt has ended.
  struct Attempt {
    enum class End { kStarted, kRanAllTheTime, kFailed };
    End end = End::kStarted;
    std::string why;        // of kFailed: what ssh has said, or the process
    bool stays_so = false;  // of kFailed: only a person can change it
  };

  // The node process runs since `now`.
  NodeRevival(std::string host, Time now) : host_(std::move(host)), standing_since_(now) {}

  // True: an attempt is to be made now; it is under way until Finish.
  bool Look(Sight sight, Time now);
  void Finish(const Attempt& attempt, Time now);
  // Lines for people since the last call.
  std::vector<std::string> TakeMessages();

 private:
  enum class Stage { kStands, kWaits, kTries, kGivenUp };

  void Wait(Time now, const std::string& why, const std::string& what);
  void Say(const std::string& what);

  const std::string host_;
  Stage stage_ = Stage::kStands;
  Time standing_since_, next_{};
  int attempts_ = 0;  // since it has stood for long
  int in_vain_ = 0;   // one after the other that failed for what stays so
  std::string said_;  // last
  std::vector<std::string> messages_;
};

}  // namespace ringmaster::cli
