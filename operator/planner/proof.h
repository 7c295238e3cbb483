// What proves that a pod is dead (docs/proof-of-death.md): that none of its processes will ever
// again say, store or compute anything. Safety rests on it where more than half of a view is lost,
// so the list is short and exact. Pure.
#pragma once

#include <optional>
#include <string>

#include "operator/planner/snapshot.h"

namespace ringmaster::planner {

inline constexpr char kOutOfServiceTaint[] = "node.kubernetes.io/out-of-service";

struct NodeEvidence {
  const NodeFacts* node = nullptr;  // null: nothing is known about it
  // The node's object is gone, and whoever installed the operator says that the cloud alone removes
  // nodes, after their instances.
  bool instance_gone = false;
};

// Which proof there is, for people; nullopt: none. NotReady, an expired lease, a deleted or
// Terminating object, phase Failed, DisruptionTarget, silence and a new pod of the same name are
// none.
std::optional<std::string> ProofOfDeath(const PodFacts& pod, const NodeEvidence& evidence);

}  // namespace ringmaster::planner
