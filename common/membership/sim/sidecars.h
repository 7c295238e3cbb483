// The sidecars of all pods: each has a real Member, and does what that wants done. They start, die
// and start again from what they have stored.
//
// Owner: World. One thread.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "common/membership/member.h"
#include "common/membership/sim/event_queue.h"
#include "common/membership/sim/invariants.h"
#include "common/membership/sim/job_truth.h"
#include "common/membership/sim/journal.h"
#include "common/membership/sim/network.h"
#include "common/membership/sim/random.h"
#include "common/membership/sim/sim_pod.h"
#include "common/membership/sim/simulation.h"
#include "common/membership/sim/workers.h"

namespace ringmaster::membership::sim {

class Sidecars {
 public:
  // All of them outlive it.
  struct Parts {
    const Options& options;
    EventQueue& events;
    Random& random;
    Network& network;
    std::vector<SimPod>& pods;
    const JobSize& job;
    JobTruth& truth;
    Journal& journal;
    Workers& workers;
    Invariants& invariants;
    // The pod registers anew, so the operators forget what its former incarnation has reported.
    std::function<void(int pod)> registers;
  };
  explicit Sidecars(Parts parts) : parts_(std::move(parts)) {}

  // Another pod, whose sidecar doesn't run yet. `bootstrap`: the job begins with it.
  int AddPod(bool bootstrap);
  void Start(int pod);
  void Crash(int pod);

  // Something comes to the Member of the pod, if it runs.
  void Step(int pod, const Event& event);
  void OnMessage(const SimEvent& event);
  void OnTimer(const SimEvent& event);
  void Heartbeats(int pod);

 private:
  void Apply(int pod, std::vector<Action>* actions);
  void ApplyOne(int pod, Action& action);
  void Post(int from, int to, const Message& message);
  void CheckNotBusy(int pod);
  void ArmTimer(int pod);

  const Parts parts_;
  std::vector<std::vector<Action>> spare_;  // emptied, to be filled again
};

}  // namespace ringmaster::membership::sim
