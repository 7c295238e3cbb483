// The calls of a view's ring: who gives what, who leaves when, and what a rank has of it. What is
// kept of a result and for how long is the product's ResultLog; the order of the calls is that of
// Pipeline and EngineLoop.
//
// Owner: World. One thread.
#pragma once

#include <vector>

#include "tests/sim/decided_views.h"
#include "tests/sim/fault_plan.h"
#include "tests/sim/invariants.h"
#include "tests/sim/journal.h"
#include "tests/sim/links.h"
#include "tests/sim/network.h"
#include "tests/sim/pods.h"
#include "tests/sim/recovery.h"
#include "tests/sim/ring.h"
#include "tests/sim/script.h"
#include "tests/sim/timeline.h"
#include "tests/sim/worker.h"

namespace ringmaster::app::sim {

class RingCalls {
 public:
  // All of them outlive it.
  struct Parts {
    Random& random;
    Timeline& time;
    Journal& journal;
    const Network& network;
    const Script& script;
    FaultPlan& plan;
    DecidedViews& views;
    Pods& pods;
    Invariants& invariants;
    Links& links;
    Recovery& recovery;
  };
  explicit RingCalls(const Parts& parts) : parts_(parts) {}

  // The ranks go through calls until each of them waits for its script again.
  void Go(Ring* ring, const std::vector<WorkerPtr>& ranks);
  // What could not get through may do so now.
  void Retry(const std::vector<WorkerPtr>& ranks);
  // The worker is out of the view, or the view has failed under it.
  void Interrupt(Worker* worker);
  // The script gets a result: one of its own ring, or one that was handed over.
  void Publish(const WorkerPtr& worker, const engine::Retained& result);
  // It stands at the boundary of its view, and says so.
  void ReachBoundary(const WorkerPtr& worker);

 private:
  bool Advance(const WorkerPtr& worker);
  void AdvanceSoon(const WorkerPtr& worker);
  void EnterCall(const WorkerPtr& worker);
  bool MayLeave(const WorkerPtr& worker, Stage* stage);
  void LeaveCall(const WorkerPtr& worker, const Stage& stage);
  void LeaveVote(const WorkerPtr& worker, const Stage& stage);
  void NextOperation(const WorkerPtr& worker);
  void LeaveReduction(const WorkerPtr& worker, const Stage& stage);
  void Reduce(Stage* stage, const membership::View& view);
  void EndStep(const WorkerPtr& worker, bool armed);
  void StrikeRing(const WorkerPtr& worker);

  const Parts parts_;
};

}  // namespace ringmaster::app::sim
