// The workers of all pods: they complete a step only if all ranks of a view take part in it.
//
// Owner: World. One thread.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "common/membership/sim/event_queue.h"
#include "common/membership/sim/job_truth.h"
#include "common/membership/sim/journal.h"
#include "common/membership/sim/network.h"
#include "common/membership/sim/random.h"
#include "common/membership/sim/sim_pod.h"
#include "common/membership/sim/simulation.h"

namespace ringmaster::membership::sim {

class Workers {
 public:
  // All of them outlive it.
  struct Parts {
    const Options& options;
    EventQueue& events;
    Random& random;
    const Network& network;
    std::vector<SimPod>& pods;
    const JobSize& job;
    JobTruth& truth;
    Journal& journal;
    std::function<void(int pod, const Event& event)> step;  // the pod's Member
  };
  explicit Workers(Parts parts) : parts_(std::move(parts)) {}

  // The sidecar tells its workers.
  void Tell(int pod, Command command, Epoch epoch);
  void OnCommand(const SimEvent& event);
  // A worker has told its sidecar.
  void OnMessage(const SimEvent& event);
  // The sidecar sees which workers there are.
  void ShowSidecar(int pod);

  // Another one takes its place after a while.
  void Kill(int pod, int slot);
  void Start(int pod, int slot);

  // It is time for the next step in this view.
  void TryStep(Epoch epoch);

 private:
  void OnView(const SimEvent& event, SimWorker* worker);
  void SendFrom(int pod, int slot, Command command, Epoch epoch);
  void CheckStopped(int pod);
  void CheckBoundary(int pod);
  void BeginWith(const View& view, SimWorker* worker);
  void CompleteStep(const View& view, const std::vector<SimWorker*>& workers);
  void CheckStep(const View& view, const std::vector<SimWorker*>& workers);

  const Parts parts_;
};

}  // namespace ringmaster::membership::sim
