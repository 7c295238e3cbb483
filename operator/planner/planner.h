// Decides what a job needs now: (snapshot) -> decision, with a reason for people at each step. No
// client, clock or log.
//
// Phases, in order:
//   0. heed nodes    which pods are on nodes that are to go, or that nobody hears from
//   1. count ends    ended pods and worker processes that status does not know yet: replaced pods,
//   restarts, faults
//   2. verdict       Succeeded, Failed or neither
//   3. clean up      of a job that has ended: cleanPodPolicy, ttl; of a suspended one: all pods
//   4. size          drains that are done, scale down, replacements, growth
//   5. view          the first view, or a new lineage when nobody of the last view lives
//   6. notices       what each sidecar should know
//   7. release       deleted pods whose death is proven, or no matter any more
//   8. status        conditions, ring, figures; events from what changed
#pragma once

#include "operator/planner/decision.h"
#include "operator/planner/snapshot.h"

namespace ringmaster::planner {

// After minReplicas pods are ready, how long the others are waited for since the last of them
// became ready.
inline constexpr std::chrono::seconds kSettle{3};
// A pod that ended with 0: how long its sidecar's word that all ranks agreed to end may take.
inline constexpr std::chrono::seconds kFinishGrace{10};

inline constexpr char kDrainAnnotation[] = "ringmaster.dev/drain";
inline constexpr char kDrainSinceAnnotation[] = "ringmaster.dev/drain-since";
inline constexpr char kHttpAnnotation[] = "ringmaster.dev/http";
inline constexpr char kJobNameLabel[] = "training.kubeflow.org/job-name";
inline constexpr char kJobRoleLabel[] = "training.kubeflow.org/job-role";
inline constexpr char kReplicaIndexLabel[] = "training.kubeflow.org/replica-index";

Decision Plan(const Snapshot& snapshot);

std::string PodName(const std::string& job, int index);

}  // namespace ringmaster::planner
