// The rings of views: their ranks connect, and go through calls (ring_calls.h) if all of them take
// part; or they find that the ring is broken.
//
// Owner: World. One thread.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "tests/sim/decided_views.h"
#include "tests/sim/journal.h"
#include "tests/sim/links.h"
#include "tests/sim/network.h"
#include "tests/sim/pods.h"
#include "tests/sim/ring_calls.h"
#include "tests/sim/script.h"
#include "tests/sim/timeline.h"
#include "tests/sim/worker.h"

namespace ringmaster::app::sim {

class Rings {
 public:
  // All of them outlive it.
  struct Parts {
    Random& random;
    Timeline& time;
    const Network& network;
    Journal& journal;
    Script& script;
    DecidedViews& views;
    const Pods& pods;
    Links& links;
    RingCalls& calls;
    std::function<void(const WorkerPtr&, Micros since)> exit_when_heard;  // its job has ended
  };
  explicit Rings(Parts parts) : parts_(std::move(parts)) {}

  // Something has changed in this view.
  void TickSoon(Epoch epoch);
  // The others' connections to it are closed.
  void LeaveView(Worker* worker);
  // A connection to a worker of another pod is reset.
  void BreakRing(const WorkerPtr& worker);

 private:
  void Tick(Epoch epoch);
  void ConnectRanks(const std::vector<WorkerPtr>& ranks);
  void FinishJob(const membership::View& view, const std::vector<WorkerPtr>& ranks);
  void LookForBroken(const membership::View& view, const std::vector<WorkerPtr>& ranks);
  void Suspect(const WorkerPtr& worker, int rank);
  void SayBroken(const WorkerPtr& worker, int rank);

  const Parts parts_;
};

}  // namespace ringmaster::app::sim
