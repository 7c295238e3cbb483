// Decides what a job needs now: (snapshot) -> decision, with a reason for people at each step. No
// client, clock or log.
//
// Phases, in order:
//   0. nodes         which pods are on nodes that are to go, or that nobody hears from
//   1. count ends    ended pods and worker processes that status does not know yet; a rule of the
//                    failure policy may fail the job here
//   2. outcome       Succeeded, Failed or neither
//   3. clean up      of a job that has ended: cleanPodPolicy, ttl; of a suspended one, and of one
//   that
//                    gives all for a more important one: all pods
//   4. size          drains that are done, scale down, pods for more important jobs, replacements,
//                    growth
//   5. admission     which pods may look for a node
//   6. view          the first view; recovery from quorum loss when no view can train any more
//   (rule 9)
//   7. notices       what each sidecar should know
//   8. release       deleted pods whose death is proven, or no matter any more
//   9. status        conditions, ring, figures; events from what changed
#pragma once

#include "operator/planner/decision.h"
#include "operator/planner/snapshot.h"

namespace ringmaster::planner {

// After minReplicas pods are ready, how long the others are waited for since the last of them
// became ready.
inline constexpr std::chrono::seconds kSettle{3};
// A pod that ended with 0: how long its sidecar's word that all ranks agreed to end may take.
inline constexpr std::chrono::seconds kFinishGrace{10};

// So long an operator that has taken a job over waits for sidecars before their silence means
// anything: they may need 10 s to notice that the former one is gone, and some more to find it.
inline constexpr std::chrono::seconds kSidecarsReturn{20};

// No view was able to train for so long: then, and only then, there is a recovery from quorum loss.
inline constexpr std::chrono::seconds kStallPatience{5};
// For so long that nobody trains is not even said.
inline constexpr std::chrono::seconds kStallSaid{1};

Decision Plan(const Snapshot& snapshot);

// What the recovery under way comes to; the first view of the lineage, or null and which members it
// waits for. The reports must be older than the list of pods.
struct QuorumRecovery {
  membership::ViewPtr view;
  bool nobody_holds = false;         // from the checkpoint, as soon as enough are ready
  std::vector<std::string> waits;    // for people: "digits-worker-2 on node-b"
  std::vector<std::string> unheard;  // of these: nobody hears them; the others will answer
  std::vector<std::string> ignored;  // the same, where onQuorumLoss does not wait for them
};
QuorumRecovery EvaluateRecovery(const Snapshot& snapshot);

// The job is about to end, or its last pods have ended and are yet to be judged: a queue that takes
// its pods away waits for that, because it takes less time than to begin again.
bool EndComesFirst(const Snapshot& snapshot);

std::string PodName(const std::string& job, int index);

}  // namespace ringmaster::planner
