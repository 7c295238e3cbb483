// Gang admission: how many gated pods of a job would find a node together, and one job after the
// other, so that two jobs don't count on the same capacity.
//
// Thread rule: every method is safe from any thread, for one job from one thread at a time.
#pragma once

#include "common/sync/mutex.h"
#include "operator/controllers/capacity_cache.h"
#include "operator/controllers/pod_writer.h"
#include "operator/planner/decision.h"
#include "operator/planner/snapshot.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {

class GangAdmission {
 public:
  // All outlive it. `capacity` is null where nobody counts the nodes: pods aren't gated then.
  GangAdmission(CapacityCache* capacity, const runtime::Informer* pods, PodWriter* writer)
      : capacity_(capacity), pods_(pods), writer_(writer) {}

  struct Planned {
    planner::Decision decision;
    bool admitted = true;  // all that the decision admits; false: look at the job again
  };
  // Plans, and lets the pods start that the plan admits. Where the job has gated pods, that is done
  // under the admission lock: the next job sees what this one's pods take. Sets gang_fit of
  // `snapshot`.
  Planned PlanAndAdmit(planner::Snapshot* snapshot);

 private:
  Planned PlanNow(const planner::Snapshot& snapshot);
  scheduler::GangFit FitOf(const planner::Snapshot& snapshot) const;

  CapacityCache* const capacity_;
  const runtime::Informer* const pods_;
  PodWriter* const writer_;
  sync::Mutex admission_mu_;  // held from counting the capacity until the admitted pods count
};

}  // namespace ringmaster::controllers
