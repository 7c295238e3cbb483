// The simulated world of one schedule: its parts, what happens next among them, and when it is
// over. Private to this folder.
#pragma once

#include <vector>

#include "common/membership/sim/event_queue.h"
#include "common/membership/sim/faults.h"
#include "common/membership/sim/invariants.h"
#include "common/membership/sim/job_truth.h"
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

class World {
 public:
  explicit World(const Options& options);
  World(const World&) = delete;  // its parts know each other
  World& operator=(const World&) = delete;
  Outcome Run();

 private:
  void Bootstrap();
  // True: the pod is paused, so the event was put off to the end of the pause.
  bool PostponedByPause(const SimEvent& event);
  void Handle(const SimEvent& event);
  void AskRecord(const SimEvent& event);
  void Heal();
  void CheckEnd();

  const Options options_;
  Random random_;
  const Profile profile_;
  EventQueue events_;
  Journal journal_;
  Network network_;
  JobSize job_;
  std::vector<SimPod> pods_;
  RecordStore record_;
  JobTruth truth_;
  Invariants invariants_;
  Workers workers_;
  Sidecars sidecars_;
  Operators operators_;
  Faults faults_;
  bool finished_ = false;
  Micros end_ = 0;  // by then training goes on with all
};

}  // namespace ringmaster::membership::sim
