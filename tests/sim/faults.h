// What goes wrong, and how it ends.
//
// Owner: World. One thread.
#pragma once

#include <functional>
#include <utility>

#include "tests/sim/api_server.h"
#include "tests/sim/fault_plan.h"
#include "tests/sim/journal.h"
#include "tests/sim/kubelets.h"
#include "tests/sim/launchers.h"
#include "tests/sim/links.h"
#include "tests/sim/network.h"
#include "tests/sim/operators.h"
#include "tests/sim/pod.h"
#include "tests/sim/pods.h"
#include "tests/sim/rings.h"
#include "tests/sim/sidecars.h"
#include "tests/sim/simulation.h"
#include "tests/sim/timeline.h"
#include "tests/sim/worker.h"
#include "tests/sim/workers.h"

namespace ringmaster::app::sim {

class Faults {
 public:
  // All of them outlive it.
  struct Parts {
    const Options& options;
    Random& random;
    Timeline& time;
    Journal& journal;
    Network& network;
    FaultPlan& plan;
    const JobSize& job;
    Pods& pods;
    ApiServer& api;
    Operators& operators;
    Links& links;
    Rings& rings;
    Workers& workers;
    Launchers& launchers;
    Sidecars& sidecars;
    Kubelets& kubelets;
    std::function<void()> healed;  // faults are over
  };
  explicit Faults(Parts parts) : parts_(std::move(parts)) {}

  // Draws a fault, and when the next one comes.
  void InjectNext();

 private:
  void Strike(Fault fault, int pod);
  void Inject(Fault fault, int pod);
  void Drain(int pod);
  void Partition();
  void Heal();
  int RandomPod();
  WorkerPtr RandomWorker(int pod);

  const Parts parts_;
};

}  // namespace ringmaster::app::sim
