// Free room that one pass keeps for one job that doesn't fit yet: as much of what the job needs as
// is free, so that no job behind it in line gets it. docs/scheduling.md says which reservations are
// sound.
//
// Pure. Capacity and grants outlive it.
#pragma once

#include <map>
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

  void BeginPass() {
    tried_ = 0;
    alone_.clear();
  }
  // Reserves room for the job, if no reservation exists and the job can fit one day: it does not
  // where the pods of no job, or its own pods, leave too little room.
  void MakeFor(const WaitingJob& waiting);
  // Calls Grants::Grow without touching the reserved room. One kind of job may use that room: a
  // running job that the reserved job has to wait for anyway, because the reserved job does not fit
  // beside it. When the running job ends all its pods go, however many they have become.
  void GrowBeside(WaitingJob* waiting, int target);
  void Lift();

 private:
  bool IsInTheWayOf(const WaitingJob& waiting) const;
  void Hold();
  void Release();

  Capacity& capacity_;
  Grants& grants_;
  const WaitingJob* job_ = nullptr;  // null: nothing is reserved
  std::vector<std::string> paths_;   // pods for which places are held
  std::shared_ptr<const Prospect> prospect_;
  std::set<ShapePtr> refused_;     // shapes that don't fit even without the reservation
  int tried_ = 0;                  // number of jobs tried in this pass
  std::map<ShapePtr, int> alone_;  // of those: Prospect::Alone(), by shape
};

}  // namespace ringmaster::scheduler
