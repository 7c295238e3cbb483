// Jobs whose pods want to be near each other: on nodes that have the same value of a label, which
// is one domain (a rack, a block, a zone). Where the pods of a job are counted is chosen here,
// once, when its first pods are to start: in the smallest domain that has room for all that it
// wants, or, where none has, in the one that has room for most.
//
// Pure. The capacity outlives it.
#pragma once

#include <map>
#include <string>

#include "operator/scheduler/capacity.h"
#include "operator/scheduler/waiting_job.h"

namespace ringmaster::scheduler {

class Topology {
 public:
  explicit Topology(Capacity* capacity) : capacity_(*capacity) {}
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  // Sets the domain of a job that has been granted nothing, and the shapes of its pods. None where
  // it asks for none, or would rather be spread than wait.
  void Choose(WaitingJob* waiting) const;
  // It is where it was: it holds places there.
  void Keep(const std::string& domain, WaitingJob* waiting) const;
  // A job that need not be in one domain: the pods that it still wants may be anywhere. False:
  // nothing has changed.
  bool Widen(WaitingJob* waiting) const;

 private:
  void CountAnywhere(WaitingJob* waiting) const;
  void CountIn(const std::string& domain, WaitingJob* waiting) const;
  // So many of its pods fit into each domain with a node that is open to them.
  std::map<std::string, int> RoomFor(const WaitingJob& waiting) const;

  Capacity& capacity_;
};

}  // namespace ringmaster::scheduler
