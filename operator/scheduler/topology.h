// Jobs whose pods want to be near each other: on nodes that have the same value of a label, which
// is one domain (a rack, a block, a zone). Where the pods of a job are counted is chosen here when
// its first pods are to start: in the smallest domain that has room for all that it wants, or,
// where none has, in the one that has room for most. Where no domain has room for enough of them,
// it waits for one that has room for enough when jobs have ended.
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

  // Something may have become free.
  void Forget() {
    rooms_.clear();
    prospects_.clear();
  }
  // Sets the domain of a job that has been granted nothing, and the shapes of its pods. None where
  // it asks for none, or would rather be spread than wait. `taker`: others make room for it in the
  // domain that it has, so it changes that only for one in which it can start now.
  void Choose(WaitingJob* waiting, bool taker = false);
  // It is where it was: it holds places there.
  void Keep(const std::string& domain, WaitingJob* waiting) const;
  // A job that need not be in one domain: the pods that it still wants may be anywhere. False:
  // nothing has changed.
  bool Widen(WaitingJob* waiting) const;

 private:
  using Rooms = std::map<std::string, int>;  // so many of a job's pods fit, by domain
  // Many jobs are alike. While nothing is held that was not, they find the same.
  struct Known {
    std::size_t places_held = 0;
    Rooms rooms;
  };

  void CountAnywhere(WaitingJob* waiting) const;
  void CountIn(const std::string& domain, WaitingJob* waiting) const;
  // Of the domains with a node that is open to its pods.
  const Rooms& RoomsFor(const WaitingJob& waiting);
  // Empty: there is none.
  std::string DomainToWaitFor(const WaitingJob& waiting);

  Capacity& capacity_;
  std::map<std::pair<ShapePtr, std::string>, Known> rooms_;  // by shape and label
  std::map<ShapePtr, std::unique_ptr<const Prospect>> prospects_;
};

}  // namespace ringmaster::scheduler
