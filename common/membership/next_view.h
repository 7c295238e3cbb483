// The value that a free proposer proposes: the successor of a view, computed from what it knows.
// Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/membership/clause.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

struct Joiner {
  Candidate candidate;
  Reason reason = Reason::kPodJoined;
};

// What has to change. Pods are named by their index in the view.
struct Change {
  std::vector<bool> gone;         // one for each pod: leaves this view
  std::vector<bool> lost_worker;  // one for each rank: the process died, its pod stays
  bool pod_lost = false;          // a pod went silent (else: processes died)
  bool link_broken = false;       // a broken link is the only fault
  bool drained = false;           // a pod leaves by plan
  bool planned = false;           // all pods stand at the boundary
  bool ran = false;               // the view has completed an operation: all hold the state
  std::vector<bool> held;         // one for each rank, or empty: a joiner that has got the state
  std::vector<Joiner> joiners;
  std::vector<bool> draining;  // one for each pod: not to be coordinator
  std::string proposer;        // coordinator, if it stays
  std::uint32_t min_pods = 1;
};

// Null when no worker that holds the training state would be left (rule 13): a view of joiners
// alone would train from nothing while a dropped pod holds the state. Survivors keep their order,
// newcomers come last.
ViewPtr NextView(const View& view, const Change& change, ClauseSet without = {});

// Which pods to drop when members accuse each other of silence ({accuser, accused}): the fewest
// pods that leave no accusation among the rest, judged greedily; in doubt the accused, never
// `self`.
std::vector<int> PodsToDrop(std::vector<std::pair<int, int>> accusations, int self);

}  // namespace ringmaster::membership
