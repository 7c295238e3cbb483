// When the next round of negotiation is due.
//
// A rank with something pending enters rounds. If a round has found that no rank has anything new
// and nothing is ready on all ranks, it is useless to repeat it at once. It is repeated after a
// pause, which doubles from 0.2 ms to 20 ms, until something new is submitted here. This rank must
// not wait for its own user alone: another rank may have got the request that all wait for, and
// without a round nobody hears of it.
//
// A rank with nothing pending enters a round every few seconds, too, if stalls are watched for or
// if two other ranks may want a transfer. A round needs all ranks: otherwise the ranks that wait
// for this one would be stuck in the round, and nobody could know for whom they wait.
//
// Thread rule: the engine's thread only; the caller gives the time.
#pragma once

#include <algorithm>
#include <chrono>

namespace ringmaster::engine {

class RoundTimer {
 public:
  using Clock = std::chrono::steady_clock;

  // Something new was submitted: the next round is due now.
  void Submitted() { submitted_ = true; }
  // A new view: nothing has been announced in it yet, so the next round is due now.
  void Restart() {
    submitted_ = true;
    due_ = {};
  }

  bool urgent() const { return submitted_; }
  Clock::time_point due() const { return due_; }

  // When a rank with nothing pending enters the next round: `every` after the newest one began.
  Clock::time_point IdleDue(std::chrono::milliseconds every) const { return begun_ + every; }

  // A round begins.
  void Begin(Clock::time_point now) {
    submitted_ = false;
    begun_ = now;
  }
  // The round has made operations ready, or some rank had something new.
  void Fruitful() {
    pause_ = {};
    due_ = {};
  }
  // It has not: the next round is due after a pause.
  void Fruitless(Clock::time_point now) {
    pause_ = std::clamp(pause_ * 2, kFirstPause, kLastPause);
    due_ = now + pause_;
  }

 private:
  static constexpr std::chrono::microseconds kFirstPause{200};
  static constexpr std::chrono::microseconds kLastPause{20000};

  bool submitted_ = false;
  Clock::time_point due_{};
  Clock::time_point begun_{};  // when the newest round began
  std::chrono::microseconds pause_{0};
};

}  // namespace ringmaster::engine
