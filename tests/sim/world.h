// The simulated world of one schedule: its parts, and when it is over. Private to this folder.
#pragma once

#include <memory>

#include "tests/sim/agreement.h"
#include "tests/sim/api_server.h"
#include "tests/sim/decided_views.h"
#include "tests/sim/end_check.h"
#include "tests/sim/fault_plan.h"
#include "tests/sim/faults.h"
#include "tests/sim/invariants.h"
#include "tests/sim/journal.h"
#include "tests/sim/kubelets.h"
#include "tests/sim/launchers.h"
#include "tests/sim/links.h"
#include "tests/sim/network.h"
#include "tests/sim/operator_sessions.h"
#include "tests/sim/operators.h"
#include "tests/sim/peers.h"
#include "tests/sim/pod.h"
#include "tests/sim/pods.h"
#include "tests/sim/recovery.h"
#include "tests/sim/ring_calls.h"
#include "tests/sim/rings.h"
#include "tests/sim/script.h"
#include "tests/sim/sidecars.h"
#include "tests/sim/simulation.h"
#include "tests/sim/stream_table.h"
#include "tests/sim/timeline.h"
#include "tests/sim/workers.h"

namespace ringmaster::health {
class Metrics;
}

namespace ringmaster::app::sim {

class World {
 public:
  explicit World(const Options& options);
  ~World();
  World(const World&) = delete;  // its parts know each other
  World& operator=(const World&) = delete;
  Outcome Run();

 private:
  void Begin();
  void CheckEnd();

  const Options options_;
  Random random_;
  Timeline time_;
  Journal journal_;
  Network network_;
  JobSize job_;
  Script script_;
  FaultPlan plan_;
  DecidedViews views_;
  StreamTable streams_;
  Pods pods_;
  Agreement agreement_;

  // From here on each knows some of those above it.
  std::unique_ptr<health::Metrics> metrics_;
  ApiServer api_;
  Operators operators_;
  Invariants invariants_;
  Links links_;
  Recovery recovery_;
  RingCalls calls_;
  Rings rings_;
  Workers workers_;
  Launchers launchers_;
  Peers peers_;
  OperatorSessions sessions_;
  Sidecars sidecars_;
  Kubelets kubelets_;
  EndCheck end_;
  Faults faults_;
  bool over_ = false;
};

}  // namespace ringmaster::app::sim
