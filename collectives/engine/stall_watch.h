// What ranks wait for in vain: tensors that some ranks have asked for long ago and others have not.
//
// After a round all ranks know the same, and the lowest rank that waits reports the stall. The rank
// that has begun to report goes on until the stall is over, even if a lower rank begins to wait
// meanwhile. The time of a stall runs from the moment at which the reporting rank asked.
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
  // An operation that was asked for before this moment has waited for a long time. Nothing: the
  // watch is off.
  Clock::time_point LongAgo(Clock::time_point now) const {
    return on() ? now - limits_.tell : Clock::time_point::min();
  }

  // Takes the operations that have waited for a long time, as rank `self` knows them from its
  // newest round. True: what is to be reported has changed.
  bool Update(const std::vector<Unanswered>& waiting, int self, Clock::time_point now);
  // The view is over. True as above.
  bool Clear() { return Update({}, 0, {}); }
  const std::vector<job::Stall>& stalls() const { return stalls_; }
  // Why this worker ends its part in the job; empty: it goes on.
  const std::string& give_up() const { return give_up_; }

 private:
  using Key = std::pair<std::string, int32_t>;  // tensor, process set

  const StallLimits limits_;
  std::vector<job::Stall> stalls_;
  std::set<Key> told_;
  std::string give_up_;
};

}  // namespace ringmaster::engine
