// Places jobs whose pods want to be near each other: on nodes with the same value of a label, which
// form a domain (a rack, a block, a zone). The domain is chosen when the job's first pods are to
// start: the smallest domain with room for all pods that the job wants or, if none has that, the
// domain with room for the most. If no domain has room for its smallest size, a job that requires
// one waits for a domain that will have room when other jobs have ended.
//
// Pure. The capacity outlives it.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "operator/scheduler/capacity.h"
#include "operator/scheduler/prospect.h"
#include "operator/scheduler/waiting_job.h"

namespace ringmaster::scheduler {

class Topology {
 public:
  explicit Topology(Capacity* capacity) : capacity_(*capacity) {}
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  // Something may have become free, so what is known is forgotten.
  void Forget() {
    rooms_.clear();
    prospects_.clear();
  }
  // Chooses the domain of a job that has been granted nothing, and with it the shapes of its pods.
  // The domain stays empty if the job wants none, or if it prefers spreading to waiting. `taker`:
  // other jobs make room for this one in its present domain, so it changes the domain only to one
  // where it can start now.
  void Choose(WaitingJob* waiting, bool taker = false);
  // The job holds places in this domain, so it stays there.
  void Keep(const std::string& domain, WaitingJob* waiting) const;
  // The pods that the job still wants may be anywhere, if it prefers one domain but doesn't require
  // it. Returns false if nothing has changed.
  bool Widen(WaitingJob* waiting) const;

 private:
  using Rooms = std::map<std::string, int>;  // so many of a job's pods fit, by domain
  // What was found for one job, for the others that are like it. It is valid while the same number
  // of places is held.
  struct Known {
    std::size_t places_held = 0;
    Rooms rooms;
  };

  void CountAnywhere(WaitingJob* waiting) const;
  void CountIn(const std::string& domain, WaitingJob* waiting) const;
  // Covers the domains that have a node open to the job's pods.
  const Rooms& RoomsFor(const WaitingJob& waiting);
  // Empty if there is none.
  std::string DomainToWaitFor(const WaitingJob& waiting);

  Capacity& capacity_;
  std::map<std::pair<ShapePtr, std::string>, Known> rooms_;  // by shape and label
  std::map<ShapePtr, std::unique_ptr<const Prospect>> prospects_;
};

}  // namespace ringmaster::scheduler
