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
#include "operator/planner/questions.h"
#include "operator/planner/snapshot.h"
#include "operator/planner/timings.h"

namespace ringmaster::planner {

Decision Plan(const Snapshot& snapshot);

}  // namespace ringmaster::planner
