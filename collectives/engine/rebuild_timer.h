// Measures a rebuild: from the stop of one view to the first operation that completes in the next.
//
// Thread rule: the engine's thread only; the times are given to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace ringmaster::engine {

struct RebuildTimes {
  uint64_t epoch = 0;  // 0: none yet
  std::string reason;
  double stop = 0, connect = 0, redo = 0, resume = 0;  // seconds
  std::chrono::steady_clock::time_point end;           // of the last of them
};

class RebuildTimer {
 public:
  using Clock = std::chrono::steady_clock;

  void Stopped(Clock::duration took) {
    times_ = {};
    times_.stop = Seconds(took);
  }
  // A new view is being connected: what the one before was rebuilding is not measured any more.
  void Begin() { pending_ = false; }
  void Connected(uint64_t epoch, const std::string& reason, Clock::duration took) {
    times_.epoch = epoch;
    times_.reason = reason;
    times_.connect = Seconds(took);
  }
  // Interrupted operations were handed over or will run again. The first view of a worker rebuilds
  // nothing.
  void Redone(Clock::time_point now, Clock::duration took, bool first_view) {
    times_.redo = Seconds(took);
    redone_at_ = now;
    rest_at_.reset();
    pending_ = !first_view;
  }
  // All ranks have shut down: from now on nobody waits for an operation. The first one after they
  // have begun again reports the rebuild, and the rest is no part of it.
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
  bool pending_ = false;
  Clock::time_point redone_at_;
  std::optional<Clock::time_point> rest_at_;
};

}  // namespace ringmaster::engine
