// How long a pod that is watched has been silent, and when it is dialled anew.
//
// Whatever TCP has in flight on a link that is cut it sends again later and later, after minutes in
// the end, and so it does with an attempt to connect. A new one is heard as soon as the link is
// back, so none gets longer than the silence that makes a suspicion: once a link is whole, both
// ends hear each other within that time and two ticks, however long it was cut.
//
// Plain data; time is handed in.
#pragma once

#include <chrono>

namespace ringmaster::rendezvous {

class PeerSilence {
 public:
  using Duration = std::chrono::milliseconds;

  PeerSilence(Duration interval, Duration suspect_after)
      : interval_(interval), suspect_after_(suspect_after) {}

  // So much time has passed, as far as this process was awake.
  void Pass(Duration elapsed) {
    lasted_ += elapsed;
    attempt_age_ += elapsed;
  }
  // A new connection is being opened.
  void Dialled() { attempt_age_ = Duration(0); }
  // This process could not even dial, so the peer's silence so far says nothing about it.
  void CouldNotAsk() { lasted_ = Duration(0); }
  void Heard() { lasted_ = attempt_age_ = Duration(0); }

  Duration lasted() const { return lasted_; }
  bool Late() const { return lasted_ > 2 * interval_; }
  bool IsSuspicious() const { return lasted_ > suspect_after_; }
  // Nothing has come by the newest connection for so long that a new one is tried.
  bool IsRedialDue() const { return attempt_age_ > suspect_after_; }

 private:
  Duration interval_, suspect_after_;
  Duration lasted_{0};
  Duration attempt_age_{0};  // since the newest one was begun, or an echo came on it
};

}  // namespace ringmaster::rendezvous
