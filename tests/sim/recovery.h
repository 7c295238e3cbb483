// Rule 14: when all ranks of a view have installed it, each says what it holds, what one holds is
// handed to those without it, and joiners get the state. In the order of EngineLoop::Recover; what
// follows from the holdings is the product's PlanRecovery.
//
// Owner: World. One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "tests/sim/decided_views.h"
#include "tests/sim/invariants.h"
#include "tests/sim/journal.h"
#include "tests/sim/pods.h"
#include "tests/sim/ring.h"
#include "tests/sim/simulation.h"
#include "tests/sim/worker.h"

namespace ringmaster::app::sim {

class Recovery {
 public:
  // All of them outlive it.
  struct Parts {
    const Options& options;
    Journal& journal;
    const Pods& pods;
    DecidedViews& views;
    Invariants& invariants;
    std::function<void(const WorkerPtr&, const engine::Retained& result)> publish;  // to the script
    std::function<void(const WorkerPtr&)> reach_boundary;
  };
  explicit Recovery(Parts parts) : parts_(std::move(parts)) {}

  static std::vector<std::byte> HoldingOf(const Worker& worker);
  // The worker leaves the call of that kind.
  void LeaveExchange(const WorkerPtr& worker, const Stage& stage);
  void LeaveHandover(const WorkerPtr& worker, const Stage& stage);
  void TakeState(const WorkerPtr& worker, const Stage& stage);
  // It goes on in its view.
  void Activate(const WorkerPtr& worker);

 private:
  void NextHandover(const WorkerPtr& worker);

  const Parts parts_;
};

}  // namespace ringmaster::app::sim
