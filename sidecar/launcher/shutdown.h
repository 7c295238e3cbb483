// How and when the launcher ends: the job finishes, SIGTERM came, or all workers are stopped.
//
// Plain data; time is handed in.
#pragma once

#include <signal.h>

#include <chrono>
#include <optional>
#include <utility>

#include "sidecar/launcher/slots.h"

namespace ringmaster::launcher {

class Shutdown {
 public:
  // Nothing starts any more, and workers end by themselves: the job finishes, or (`left`) this pod
  // has left it. False: it was known.
  bool Finish(bool left) {
    job_finishes_ = job_finishes_ || !left;
    return !std::exchange(finishing_, true);
  }
  bool finishing() const { return finishing_; }

  enum class SidecarIs { kThere, kAway, kNotSeenYet };
  // How long a sidecar whose connection has broken is waited for when SIGTERM comes.
  static constexpr std::chrono::seconds kSidecarReturns{2};
  // SIGTERM came; the sidecar has this `patience` to drain the pod, if it is there or comes back
  // soon. False: it came before.
  bool Terminate(TimePoint now, std::chrono::milliseconds patience, SidecarIs sidecar);
  bool terminating() const { return terminating_; }
  // There is a connection to the sidecar, perhaps again.
  void SidecarFound();
  // SIGTERM came, and a sidecar is there to drain the pod.
  bool drains() const { return drains_; }
  // SIGTERM came to the sidecar, maybe to it alone, and the workers leave for that reason.
  void SidecarTerminated() { sidecar_terminated_ = true; }

  // All workers get TERM, and KILL after `grace`. False: they have got TERM already.
  bool Stop(TimePoint now, std::chrono::milliseconds grace);
  bool stopping() const { return kill_at_.has_value(); }

  // Nothing is to start or to be restarted.
  bool ending() const { return finishing_ || stopping(); }

  // The drain took too long.
  bool TakeDrainTooLong(TimePoint now) { return TakeDue(&drain_until_, now); }
  // Comes again every second.
  bool TakeKill(TimePoint now);
  std::optional<TimePoint> NextWake() const { return Earlier(drain_until_, kill_at_); }

  // The first failure counts.
  void SetExitCode(int code) {
    if (exit_code_.value_or(0) == 0) exit_code_ = code;
  }
  std::optional<int> exit_code() const { return exit_code_; }
  // With what the launcher ends. A pod whose workers left because SIGTERM came, and not because the
  // job finishes, is no success: it may not even be deleted, as where its machine shuts down.
  int FinalExitCode() const {
    const int code = exit_code_.value_or(0);
    const bool terminated = terminating_ || sidecar_terminated_;
    return code == 0 && terminated && !job_finishes_ ? 128 + SIGTERM : code;
  }

 private:
  bool finishing_ = false, job_finishes_ = false, terminating_ = false, sidecar_terminated_ = false;
  bool drains_ = false;
  TimePoint patient_until_;  // with a sidecar that drains the pod
  std::optional<TimePoint> drain_until_, kill_at_;
  std::optional<int> exit_code_;
};

}  // namespace ringmaster::launcher
