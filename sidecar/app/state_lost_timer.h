// How long a job whose state is lost waits for an operator to start it again.
//
// When every worker that held the job's state has died, no view can follow, and a process started
// again is a joiner that nobody can give the state. An operator starts the job again
// (membership.md, rule 9), or reports what that waits for. Without one, the workers that are left
// would wait for ever: that they fail is what ends the job. Plain data of the sidecar's loop; time
// is handed in.
#pragma once

#include <chrono>
#include <optional>

#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

class StateLostTimer {
 public:
  enum class Event { kNone, kLost, kGiveUp };

  StateLostTimer(bool has_operator, std::chrono::seconds operator_patience)
      : has_operator_(has_operator), operator_patience_(operator_patience) {}

  // `lost`: the state is lost and this pod still takes part. kLost and kGiveUp come once.
  Event Update(bool lost, bool operator_connected, SteadyTime now);

 private:
  const bool has_operator_;
  const std::chrono::seconds operator_patience_;
  std::optional<SteadyTime> since_;
  bool gave_up_ = false;
};

}  // namespace ringmaster::app
