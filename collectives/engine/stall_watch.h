// What ranks wait for in vain: tensors that some ranks have asked for long ago and others have not.
//
// All ranks know the same after a round, and the lowest of those that wait tells it; who has told
// it goes on until it is over, also when a lower rank has come to wait that has not waited long.
// Time runs from the moment at which the rank that tells asked.
//
// Pure. Thread rule: the engine's thread only; time is handed in.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collectives/engine/announcements.h"
#include "common/job/stall.h"

namespace ringmaster::engine {

struct StallLimits {
  std::chrono::milliseconds tell{0};  // after so long it is told; 0: never
  std::chrono::milliseconds give_up{
      0};  // after so long the worker ends its part in the job; 0: never
};

class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit StallWatch(StallLimits limits) : limits_(limits) {}

  bool on() const { return limits_.tell.count() > 0; }
  // What has been asked for before this moment waits for long. Where the watch is off: nothing.
  Clock::time_point LongAgo(Clock::time_point now) const {
    return on() ? now - limits_.tell : Clock::time_point::min();
  }

  // What waits for long as rank `self` has heard in its newest round. True: what is to be told has
  // changed.
  bool Update(const std::vector<Unanswered>& waiting, int self, Clock::time_point now);
  // The view is over. True as above.
  bool Clear() { return Update({}, 0, {}); }
  const std::vector<job::Stall>& stalls() const { return stalls_; }
  // Why this worker gives up; empty: it doesn't.
  const std::string& give_up() const { return give_up_; }

 private:
  using Key = std::pair<std::string, int32_t>;  // tensor, process set

  const StallLimits limits_;
  std::vector<job::Stall> stalls_;
  std::set<Key> told_;
  std::string give_up_;
};

}  // namespace ringmaster::engine
