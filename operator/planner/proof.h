// What proves that a pod is dead (docs/proof-of-death.md): that none of its processes will ever
// again say, store or compute anything. Safety rests on it where more than half of a view is lost,
// so the list is short and exact. Pure.
#pragma once

#include <optional>
#include <string>

#include "operator/planner/snapshot.h"

namespace ringmaster::planner {

// Keeps the object of a worker pod, and with it the kubelet's last word, through forced deletion
// and pod garbage collection.
inline constexpr char kProofFinalizer[] = "ringmaster.dev/proof-of-death";
// NodeFacts::BootRecord() of the boot that the pod's sidecar runs in.
inline constexpr char kBootAnnotation[] = "ringmaster.dev/boot";
// The proof, where it isn't the kubelet's (that one stays in the pod's status): a taint may go
// again. A person may write it too, and vouches for it then.
inline constexpr char kProvenAnnotation[] = "ringmaster.dev/proven-dead";
// Why a deleted pod is still there, for people.
inline constexpr char kHeldAnnotation[] = "ringmaster.dev/held";
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
