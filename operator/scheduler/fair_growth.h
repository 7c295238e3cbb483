// Grants pods to jobs one size after the other, so that the job with the smallest share
// (shares.h) grows next. Room that is reserved is left alone (reservation.h).
//
// Pure. What the constructor takes outlives it.
#pragma once

#include <vector>

#include "operator/scheduler/reservation.h"
#include "operator/scheduler/shares.h"
#include "operator/scheduler/topology.h"

namespace ringmaster::scheduler {

class FairGrowth {
 public:
  FairGrowth(const Capacity& capacity, Reservation* reservation, Topology* topology)
      : reservation_(*reservation), topology_(*topology), shares_(capacity) {}
  FairGrowth(const FairGrowth&) = delete;
  FairGrowth& operator=(const FairGrowth&) = delete;

  void BeginPass() { shares_.Forget(); }
  // Lets the jobs grow by turns as far as there is room. They are in the order of the line, which
  // decides between equal shares. `once`: each job grows at most to its smallest size.
  void Grow(const std::vector<WaitingJob*>& jobs, bool once);
  // Grants the job up to `target` pods, all that it has included.
  void GrowTo(int target, WaitingJob* waiting);

 private:
  Reservation& reservation_;
  Topology& topology_;
  Shares shares_;
};

}  // namespace ringmaster::scheduler
