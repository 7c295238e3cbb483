// Computes the successor of a view from what a proposer knows: the value that it proposes if it is
// free to choose. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/membership/clause.h"
#include "common/membership/sizes.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

struct Joiner {
  Candidate candidate;
  Reason reason = Reason::kPodJoined;
};

// What has to change. Pods are named by their index in the view.
struct Change {
  std::vector<bool> gone;         // one for each pod: it is not in the next view
  std::vector<bool> lost_worker;  // one for each rank: the process died, its pod stays
  bool pod_lost = false;          // a pod went silent; false: only processes died
  bool link_broken = false;       // a broken link is the only fault
  bool drained = false;           // a pod leaves by plan
  bool planned = false;           // all pods stand at the boundary
  bool ran = false;               // the view has completed an operation: all hold the state
  std::vector<bool> held;         // one for each rank, or empty: it is known to hold the state
  std::vector<Joiner> joiners;
  std::vector<bool> draining;  // one for each pod: it leaves soon, so it should not coordinate
  std::string proposer;        // uid of the pod that should coordinate the next view
  Sizes sizes;                 // with another number of pods the next view does not train
};

// Where a planned change would make a view of another number of pods than may train, some are left
// out, so that it is one: first newcomers, then the last pods of the view. They may join again. A
// view made for a fault leaves nobody out for this: it is held, a plan follows, and what those have
// completed whom that leaves out is handed over before.
//
// Null when no worker that holds the training state would be left (rule 13): a view of joiners
// alone would train from nothing while a dropped pod holds the state. Survivors keep their order,
// newcomers come last.
ViewPtr NextView(const View& view, const Change& change, ClauseSet without = {});

// Which pods to drop so that no accusation ({accuser, accused}) is left between two pods that stay.
// Greedy, to drop few: always the pod with the most accusations by or against it, among equals the
// one that is accused more often, never `self`.
std::vector<int> PodsToDrop(std::vector<std::pair<int, int>> accusations, int self);

}  // namespace ringmaster::membership
