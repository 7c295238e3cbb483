// Measures a rebuild as this worker sees it: from the moment at which its view broke or was to be
// stopped to the first operation that completes in the next view.
//
// Thread rule: the engine's thread only; the caller gives the times.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace ringmaster::engine {

struct RebuildTimes {
  uint64_t epoch = 0;  // 0: none yet
  std::string reason;
  double stop = 0, connect = 0, redo = 0, resume = 0;  // seconds
  std::chrono::steady_clock::time_point end;           // of the rebuild
  // When this worker first saw that its view was over; when it was told to stop; when the next view
  // came. The stop runs between the first and the last of them.
  std::chrono::steady_clock::time_point noticed, stop_asked, decided;
};

class RebuildTimer {
 public:
  using Clock = std::chrono::steady_clock;

  // The view has broken at this worker. A stop follows.
  void Broke(Clock::time_point now) {
    if (!noticed_) noticed_ = now;
  }
  // `asked`: when the stop came. It may have come before the view broke, and broken it.
  void Stopped(Clock::time_point asked, Clock::time_point now) {
    noticed_ = std::min(asked, noticed_.value_or(asked));
    times_ = {};
    times_.stop_asked = asked;
    times_.stop = Seconds(now - asked);
  }
  // A new view, which came at `decided`, is being connected: a rebuild that has not ended by now is
  // no longer measured.
  void Begin(Clock::time_point decided) {
    pending_ = false;
    times_.decided = decided;
    times_.noticed = std::min(decided, noticed_.value_or(decided));
    noticed_.reset();
  }
  void Connected(uint64_t epoch, const std::string& reason, Clock::duration took) {
    times_.epoch = epoch;
    times_.reason = reason;
    times_.connect = Seconds(took);
  }
  // Interrupted operations have been handed over or will run again. `first_view`: nothing is
  // rebuilt, because this worker was in no view before.
  void Redone(Clock::time_point now, Clock::duration took, bool first_view) {
    times_.redo = Seconds(took);
    redone_at_ = now;
    rest_at_.reset();
    pending_ = !first_view;
  }
  // All ranks have shut down, so from now on nobody waits for an operation. The first operation
  // after they have begun again reports the rebuild, without the time that they have rested.
  void Rest(Clock::time_point now) { rest_at_ = now; }
  bool pending() const { return pending_; }
  // An operation has completed in the new view: that ends the rebuild.
  const RebuildTimes& Resumed(Clock::time_point now) {
    pending_ = false;
    times_.end = rest_at_.value_or(now);
    times_.resume = Seconds(times_.end - redone_at_);
    return times_;
  }
  double connect_seconds() const { return times_.connect; }

 private:
  static double Seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

  RebuildTimes times_;
  std::optional<Clock::time_point> noticed_;  // since the newest view came
  bool pending_ = false;
  Clock::time_point redone_at_;
  std::optional<Clock::time_point> rest_at_;
};

}  // namespace ringmaster::engine
