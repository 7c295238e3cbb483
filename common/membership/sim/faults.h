// The faults of a schedule: which comes next, what it does, and how all of them end.
//
// Owner: World. One thread.
#pragma once

#include <vector>

#include "common/membership/sim/event_queue.h"
#include "common/membership/sim/journal.h"
#include "common/membership/sim/network.h"
#include "common/membership/sim/operators.h"
#include "common/membership/sim/random.h"
#include "common/membership/sim/record_store.h"
#include "common/membership/sim/sidecars.h"
#include "common/membership/sim/sim_pod.h"
#include "common/membership/sim/simulation.h"
#include "common/membership/sim/workers.h"

namespace ringmaster::membership::sim {

class Faults {
 public:
  // All of them outlive it.
  struct Parts {
    const Profile profile;
    EventQueue& events;
    Random& random;
    Network& network;
    std::vector<SimPod>& pods;
    JobSize& job;
    RecordStore& record;
    Journal& journal;
    Workers& workers;
    Sidecars& sidecars;
    Operators& operators;
  };
  explicit Faults(const Parts& parts) : parts_(parts) {}

  // Draws a fault and a pod for it.
  void InjectNext();
  // The end of all faults: from now on the network delivers and every pod that is not gone runs.
  void Heal();
  // For good.
  void KillPod(int pod);

 private:
  void Inject(Fault fault, int pod);
  void KillOne(int pod);
  void KillMost();
  void RestartSidecar(int pod, bool lose_file);
  void Partition(int pod);
  void CutLink(int pod);
  void SuspectWrongly();
  void BreakLink(int pod);
  void Drain(int pod);
  void StopOneOperator();
  void StopOperators();
  void RecoverForNoReason();
  // The connections to its process are reset.
  void Reset(int pod);
  int RandomPod();

  const Parts parts_;
};

}  // namespace ringmaster::membership::sim
