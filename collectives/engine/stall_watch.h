// Watches for stalls: operations that some ranks asked for long ago and other ranks have not asked
// for.
//
// After a round all ranks know the same, and the lowest rank that waits reports the stall. The rank
// that has begun to report goes on until the stall is over, even if a lower rank begins to wait
// meanwhile. The time of a stall runs from the moment at which the reporting rank asked.
//
// Pure. Thread rule: the engine's thread only; the caller gives the time.
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
  std::chrono::milliseconds tell{0};  // how long an operation waits before it is reported; 0: never
  // How long it waits before the worker ends its part in the job; 0: never.
  std::chrono::milliseconds give_up{0};
};

class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit StallWatch(StallLimits limits) : limits_(limits) {}

  bool on() const { return limits_.tell.count() > 0; }
  // An operation that was asked for before this moment has waited for a long time. If the watch is
  // off the moment lies before all others.
  Clock::time_point LongAgo(Clock::time_point now) const {
    return on() ? now - limits_.tell : Clock::time_point::min();
  }

  // Takes the operations that rank `self` has waited for a long time, as its newest round has shown
  // them. True: stalls() has changed, and not only in how long they last.
  bool Update(const std::vector<Unanswered>& waiting, int self, Clock::time_point now);
  // The view is over, so nothing waits. Returns as Update().
  bool Clear() { return Update({}, 0, {}); }
  // What this rank reports.
  const std::vector<job::Stall>& stalls() const { return stalls_; }
  // Why this worker ends its part in the job; empty: it goes on.
  const std::string& give_up() const { return give_up_; }

 private:
  using Key = std::pair<std::string, int32_t>;  // tensor, process set

  const StallLimits limits_;
  std::vector<job::Stall> stalls_;
  std::set<Key> told_;  // the operations of stalls_, which this rank goes on reporting
  std::string give_up_;
};

}  // namespace ringmaster::engine
