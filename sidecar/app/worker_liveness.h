// Since when a worker process has been silent, stopped or without a connection: what tells whether
// it still lives.
//
// Plain data of the sidecar's loop; time is handed in.
#pragma once

#include <chrono>
#include <optional>

#include "sidecar/app/process_identity.h"

namespace ringmaster::app {

class WorkerLiveness {
 public:
  // Only a stored view names the process: neither it nor the launcher has told this sidecar that it
  // lives.
  void ExpectedByView(SteadyTime now) {
    unheard_ = true;
    heard_ = now;
    closed_at_ = now;
  }
  // That a process runs doesn't mean that it will connect again: a signal may have stopped it.
  void NamedByLauncher() { unheard_ = false; }
  void ConnectionOpened(SteadyTime now) {
    unheard_ = false;
    heard_ = now;
    closed_at_.reset();
  }
  void ConnectionClosed(SteadyTime now) { closed_at_ = now; }
  void Heard(SteadyTime now) { heard_ = now; }
  void LauncherAsked(SteadyTime now) { asked_ = now; }
  // The launcher says that a signal has stopped it.
  void Halted(SteadyTime now) {
    if (!halted_at_) halted_at_ = now;
  }
  void Continued() { halted_at_.reset(); }
  // This sidecar stood still for so long: what the worker said meanwhile has yet to be read.
  void ForgiveOwnSleep(SteadyTime::duration slept, SteadyTime now);

  bool unheard() const { return unheard_; }
  std::optional<SteadyTime> halted_at() const { return halted_at_; }
  // Its socket closed then, and nobody has said that the process ended.
  std::optional<SteadyTime> closed_at() const { return closed_at_; }
  SteadyTime::duration SilentFor(SteadyTime now) const { return now - heard_; }
  SteadyTime::duration StillFor(SteadyTime now) const { return now - halted_at_.value_or(heard_); }
  // When the launcher is next to be asked what the process does: when a signal has stopped it for
  // `stopped_for`, or it has been silent for three pings; at most once in a ping.
  SteadyTime AskAt(std::chrono::milliseconds stopped_for, std::chrono::milliseconds ping) const;

 private:
  bool unheard_ = false;
  SteadyTime heard_{};  // the last frame
  SteadyTime asked_{};  // the launcher, what it does instead
  std::optional<SteadyTime> halted_at_;
  std::optional<SteadyTime> closed_at_;
};

}  // namespace ringmaster::app
