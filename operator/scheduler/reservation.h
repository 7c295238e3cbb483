// What is free and kept, in one pass, for one job that doesn't fit yet: as much of what it needs as
// there is, so that nobody behind it in line has that. docs/scheduling.md says which reservations
// are sound.
//
// Pure. Capacity and grants outlive it.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "operator/scheduler/grants.h"
#include "operator/scheduler/prospect.h"

namespace ringmaster::scheduler {

class Reservation {
 public:
  Reservation(Capacity* capacity, Grants* grants) : capacity_(*capacity), grants_(*grants) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  void BeginPass() { tried_ = 0; }
  // Only if there is none yet, and where the job fits some day: not beside what others than jobs
  // have, nor where its own pods are in its way.
  void MakeFor(const WaitingJob& waiting);
  // Grants::Grow, with what is kept for another job kept, unless this job is one that the other
  // one waits for: when a job that runs ends, its pods go, however many they are, and until then
  // the other one doesn't fit.
  void GrowBeside(WaitingJob* waiting, int target);
  void Lift();

 private:
  bool IsInTheWayOf(const WaitingJob& waiting) const;
  void Hold();
  void Release();

  Capacity& capacity_;
  Grants& grants_;
  const WaitingJob* job_ = nullptr;  // null: there is none
  std::vector<std::string> paths_;   // for which places are held
  std::shared_ptr<const Prospect> prospect_;
  std::set<ShapePtr> refused_;  // don't fit, even where the reservation is lifted
  int tried_ = 0;               // in this pass
};

}  // namespace ringmaster::scheduler
