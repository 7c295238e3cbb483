// What runs in the pods of a schedule: sidecars, launchers and workers, and what goes on between
// them. It only puts these together.
//
// Owner: World. One thread.
#pragma once

#include <functional>
#include <string>

#include "tests/sim/decided_views.h"
#include "tests/sim/fault_plan.h"
#include "tests/sim/invariants.h"
#include "tests/sim/journal.h"
#include "tests/sim/launchers.h"
#include "tests/sim/links.h"
#include "tests/sim/network.h"
#include "tests/sim/operator_sessions.h"
#include "tests/sim/operators.h"
#include "tests/sim/peers.h"
#include "tests/sim/pods.h"
#include "tests/sim/recovery.h"
#include "tests/sim/ring_calls.h"
#include "tests/sim/rings.h"
#include "tests/sim/script.h"
#include "tests/sim/sidecars.h"
#include "tests/sim/simulation.h"
#include "tests/sim/timeline.h"
#include "tests/sim/workers.h"

namespace ringmaster::app::sim {

class PodProcesses {
 public:
  // All of them outlive it.
  struct Parts {
    const Options& options;
    Random& random;
    Timeline& time;
    Journal& journal;
    Network& network;
    const JobSize& job;
    Script& script;
    FaultPlan& plan;
    DecidedViews& views;
    Pods& pods;
    Invariants& invariants;
    Operators& operators;
    std::function<void(int pod, const std::string& why)> kill_pod;
  };
  explicit PodProcesses(const Parts& parts);
  PodProcesses(const PodProcesses&) = delete;  // its parts know each other
  PodProcesses& operator=(const PodProcesses&) = delete;

  Links& links() { return links_; }
  Rings& rings() { return rings_; }
  Workers& workers() { return workers_; }
  Launchers& launchers() { return launchers_; }
  OperatorSessions& sessions() { return sessions_; }
  Sidecars& sidecars() { return sidecars_; }

 private:
  AgentPost ToAgent();

  Links links_;
  Recovery recovery_;
  RingCalls calls_;
  Rings rings_;
  Workers workers_;
  Launchers launchers_;
  Peers peers_;
  OperatorSessions sessions_;
  Sidecars sidecars_;
};

}  // namespace ringmaster::app::sim
