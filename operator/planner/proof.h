// What proves that a pod is dead (docs/proof-of-death.md), so that none of its processes will ever
// send, store or compute anything again. Safety depends on it when more than half of a view is
// lost, so the list is short and exact. Pure.
#pragma once

#include <optional>
#include <string>

#include "operator/planner/snapshot.h"

namespace ringmaster::planner {

inline constexpr char kOutOfServiceTaint[] = "node.kubernetes.io/out-of-service";

struct NodeEvidence {
  const NodeFacts* node = nullptr;  // null: the node is unknown
  // The node's object is gone, and the operator was told at installation that only the cloud
  // removes nodes, after their instances.
  bool instance_gone = false;
};

// Returns the proof, for people, or nullopt if there is none. None of these is a proof: NotReady,
// an expired lease, a deleted or Terminating object, phase Failed, DisruptionTarget, silence, a new
// pod with the same name.
std::optional<std::string> ProofOfDeath(const PodFacts& pod, const NodeEvidence& evidence);

}  // namespace ringmaster::planner
