// When the next round of negotiation is due.
//
// A rank with something pending enters rounds. When a round has found that no rank has anything
// new and nothing is ready everywhere, repeating it at once is of no use: it is repeated after a
// pause that doubles from 0.2 ms to 20 ms, until something new is submitted here. The pause can't
// be a wait for the own user alone: another rank may have got what all wait for, and without a
// round nobody hears of it.
//
// A rank with nothing pending enters a round every few seconds where stalls are looked for: a round
// needs all ranks, so else those that wait for it would wait in the round, and nobody could know
// for whom.
//
// Thread rule: the engine's thread only; it doesn't read a clock.
#pragma once

#include <algorithm>
#include <chrono>

namespace ringmaster::engine {

class RoundTimer {
 public:
  using Clock = std::chrono::steady_clock;

  // Something new was submitted: the next round is due now.
  void Submitted() { submitted_ = true; }
  // A new view: what was announced in the old one is void, so all is new.
  void Restart() {
    submitted_ = true;
    due_ = {};
  }

  bool urgent() const { return submitted_; }
  bool Due(Clock::time_point now) const { return submitted_ || now >= due_; }
  Clock::time_point due() const { return due_; }

  // When a rank with nothing pending enters the next one, if `every` so often.
  Clock::time_point IdleDue(std::chrono::milliseconds every) const { return begun_ + every; }

  void Begin(Clock::time_point now) {
    submitted_ = false;
    begun_ = now;
  }
  // The round has made operations ready, or some rank had something new.
  void Fruitful() {
    pause_ = {};
    due_ = {};
  }
  void Fruitless(Clock::time_point now) {
    pause_ = std::clamp(pause_ * 2, kFirstPause, kLastPause);
    due_ = now + pause_;
  }

 private:
  static constexpr std::chrono::microseconds kFirstPause{200};
  static constexpr std::chrono::microseconds kLastPause{20000};

  bool submitted_ = false;
  Clock::time_point due_{};
  Clock::time_point begun_{};  // the newest round
  std::chrono::microseconds pause_{0};
};

}  // namespace ringmaster::engine
