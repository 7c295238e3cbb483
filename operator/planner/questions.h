// What controllers ask of a snapshot beside the plan. Pure.
#pragma once

#include <string>
#include <vector>

#include "operator/planner/snapshot.h"

namespace ringmaster::planner {

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
