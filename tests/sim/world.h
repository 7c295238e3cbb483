// The simulated world of one schedule: its parts, and when it is over. Private to this folder.
#pragma once

#include "tests/sim/api_server.h"
#include "tests/sim/decided_views.h"
#include "tests/sim/end_check.h"
#include "tests/sim/fault_plan.h"
#include "tests/sim/faults.h"
#include "tests/sim/invariants.h"
#include "tests/sim/journal.h"
#include "tests/sim/kubelets.h"
#include "tests/sim/network.h"
#include "tests/sim/operators.h"
#include "tests/sim/pod.h"
#include "tests/sim/pod_processes.h"
#include "tests/sim/pods.h"
#include "tests/sim/script.h"
#include "tests/sim/simulation.h"
#include "tests/sim/timeline.h"

namespace ringmaster::app::sim {

class World {
 public:
  explicit World(const Options& options);
  World(const World&) = delete;  // its parts know each other
  World& operator=(const World&) = delete;
  Outcome Run();

 private:
  void Begin();
  void AllowEvenSizesOnly();

  const Options options_;
  Random random_;
  Timeline time_;
  Journal journal_;
  Network network_;
  JobSize job_;
  Script script_;
  FaultPlan plan_;
  DecidedViews views_;
  Pods pods_;

  // From here on each knows some of those above it.
  Invariants invariants_;
  ApiServer api_;
  Operators operators_;
  PodProcesses processes_;
  Kubelets kubelets_;
  EndCheck end_;
  Faults faults_;
};

}  // namespace ringmaster::app::sim
