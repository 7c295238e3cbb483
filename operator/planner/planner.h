// Decides what a job needs now: (snapshot) -> decision, with a reason for people at each step. No
// client, clock or log.
//
// Phases, in order:
//   0. nodes       finds pods on nodes that are about to go or whose kubelet is silent
//   1. count ends  counts ended pods and workers that the status does not have yet; a rule of the
//                  failure policy may fail the job here
//   2. outcome     Succeeded, Failed or neither
//   3. clean up    of an ended job: cleanPodPolicy, ttl; of a suspended job, or one that gives up
//                  everything for a more important one: all pods
//   4. size        completed drains, scale-down, pods for more important jobs, replacements, growth
//   5. admission   which pods may start
//   6. view        the first view; recovery from quorum loss when no view can train (rule 9)
//   7. notices     what each sidecar should know
//   8. release     deleted pods whose death is proven, or no longer matters
//   9. status      conditions, ring, figures; events about what has changed
#pragma once

#include "operator/planner/decision.h"
#include "operator/planner/snapshot.h"

namespace ringmaster::planner {

// When minReplicas pods are ready, the planner waits for the others until this long after the last
// one became ready.
inline constexpr std::chrono::seconds kSettle{3};
// After a pod has ended with 0, its sidecar may take this long to report that all ranks have agreed
// to end.
inline constexpr std::chrono::seconds kFinishGrace{10};

// After a new operator has taken over a job, silence of sidecars means nothing for this long: they
// may need 10 s to notice that the former operator is gone, and some more to find the new one.
inline constexpr std::chrono::seconds kSidecarsReturn{20};

// A recovery from quorum loss begins only if no view was able to train for this long.
inline constexpr std::chrono::seconds kStallPatience{5};
// Shorter times without training are not reported.
inline constexpr std::chrono::seconds kStallSaid{1};

Decision Plan(const Snapshot& snapshot);

// The result of the recovery in progress: the first view of the lineage, or null and the members
// that it waits for. The reports must be older than the list of pods.
struct QuorumRecovery {
  membership::ViewPtr view;
  // No pod has the state: start from the checkpoint when enough pods are ready.
  bool nobody_holds = false;
  std::vector<std::string> waits;    // for people: "digits-worker-2 on node-b"
  std::vector<std::string> unheard;  // those of `waits` that are silent; the others will answer
  std::vector<std::string> ignored;  // like `unheard`, but onQuorumLoss doesn't wait for them
};
QuorumRecovery EvaluateRecovery(const Snapshot& snapshot);

// The job is about to end, or its last pods have ended and their exits are not evaluated yet. A
// queue that takes the pods away waits for that, because it takes less time than to begin again.
bool EndComesFirst(const Snapshot& snapshot);

std::string PodName(const std::string& job, int index);

}  // namespace ringmaster::planner
