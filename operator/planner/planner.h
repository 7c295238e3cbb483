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
#include "operator/planner/questions.h"
#include "operator/planner/snapshot.h"
#include "operator/planner/timings.h"

namespace ringmaster::planner {

Decision Plan(const Snapshot& snapshot);

}  // namespace ringmaster::planner
