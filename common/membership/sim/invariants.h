// What must hold of the views of a schedule whenever one is decided (I2, I5), and what must have
// come about when all faults are over.
//
// Owner: World. One thread.
#pragma once

#include <vector>

#include "common/membership/sim/event_queue.h"
#include "common/membership/sim/job_truth.h"
#include "common/membership/sim/journal.h"
#include "common/membership/sim/record_store.h"
#include "common/membership/sim/sim_pod.h"

namespace ringmaster::membership::sim {

class Invariants {
 public:
  // All of them outlive it.
  struct Parts {
    const EventQueue& events;
    const std::vector<SimPod>& pods;
    const JobSize& job;
    const RecordStore& record;
    JobTruth& truth;
    Journal& journal;
  };
  explicit Invariants(const Parts& parts) : parts_(parts) {}

  // A member or an operator takes this view as decided.
  void Announce(const ViewPtr& view);

  // Training goes on with all that are there.
  bool Healthy() const;
  // It is right that it does not.
  bool RightlyBlocked(bool operators_know_a_view) const;

 private:
  void CheckJoiners(const View& view, const View& parent);
  void BeginLineage(const View& view);

  const Parts parts_;
};

}  // namespace ringmaster::membership::sim
