// How a pod that got SIGTERM uses its grace period: until when it may leave by plan, when its
// launcher is stopped, and when the sidecar may end.
//
// Plain data of the sidecar's loop; time is handed in.
#pragma once

#include <chrono>
#include <optional>

#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

// How much of `left`, the time until the pod is killed, it may wait for the boundary of its view
// before it resigns.
std::chrono::milliseconds TimeForBoundary(std::chrono::milliseconds left);

class Termination {
 public:
  struct Situation {
    bool workers_live = false;
    bool needed = false;                        // others may still ask, or have to hear
    std::optional<SteadyTime> finishing_since;  // the job's end
  };
  struct Steps {
    bool stop_launcher = false;
    bool end = false;
  };

  // False: it has begun before. The pod resigns at resign_at() if its plan takes longer.
  bool Begin(SteadyTime now, std::chrono::milliseconds grace);
  bool begun() const { return begun_; }
  SteadyTime resign_at() const { return resign_at_; }
  Steps Next(SteadyTime now, const Situation& situation);

 private:
  bool begun_ = false, launcher_stopped_ = false;
  SteadyTime resign_at_{}, give_up_at_{};
  std::optional<SteadyTime> gone_since_;  // no worker lives
};

}  // namespace ringmaster::app
