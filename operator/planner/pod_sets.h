// The job's pods that have not ended, by what becomes of them.
//
// Owner and thread: Plan(); one thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/planner/disruption.h"
#include "operator/planner/snapshot.h"

namespace ringmaster::planner {

struct PodSets {
  std::vector<const PodFacts*> active;  // run or are coming; not marked to leave
  std::map<std::string, Warning>
      warned;                  // of `active`, by uid: on a node that is to go, or a GPU fails
  std::set<std::string> away;  // of `active`: nobody hears from the node, and the ring does without
  std::vector<const PodFacts*> leaving;  // drained or deleted, not ended
  // Never started: an operator of an earlier version has made them with a gate. They go.
  std::vector<const PodFacts*> gated;

  explicit PodSets(const Snapshot& in);
  // Of `active`: will be there tomorrow too, for all we know.
  bool Stays(const PodFacts& pod) const;
};

}  // namespace ringmaster::planner
