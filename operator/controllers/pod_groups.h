// PodGroups of Kubernetes (scheduling.k8s.io, behind its feature gate GenericWorkload): where an
// API server serves them the scheduler itself keeps the pods of a job together, and they need no
// gate of ours (docs/scheduling.md).
//
// Pure, but for ServedPodGroups.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/api/horovod_job.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/snapshot.h"

namespace ringmaster::controllers {

// Those that are known here, the newest first.
const std::vector<kube::Resource>& PodGroupVersions();
// The newest version that is served and may be listed in these namespaces (empty: in all); nullopt:
// none is, or after `kAskings` the API server has still not said (it is busy, it does not answer,
// it has refused the token). Between them is `pause`. Blocks.
inline constexpr int kAskings = 10;
std::optional<kube::Resource> ServedPodGroups(
    kube::KubeApi& api, std::vector<std::string> namespaces, const std::stop_token& stop,
    std::chrono::milliseconds pause = std::chrono::seconds(1));

// With the beginning of the job's uid: Kubernetes keeps a group as long as a pod names it, and so
// the pods of a job that is made anew under its name would keep the group of the one before.
std::string PodGroupName(const std::string& job, const std::string& uid);
kube::Json BuildPodGroup(const api::HorovodJob& job, const kube::Resource& version);
// Of a group that is there: what the API server lets nobody change stays as it is.
void KeepWhatIsFixed(const kube::Json& live, kube::Json* wanted);
// Puts the pod into the job's group, which has to be there: a pod whose group is not never starts.
void JoinPodGroup(const api::HorovodJob& job, kube::Json* pod);

// What the job asks for is the scheduler's to give. It is not where a queue decides, nor where it
// asks for what only the operator's own admission has.
bool SuitsPodGroup(const api::HorovodJob& job);
// And none of its pods is of a time when it had none: a group counts those alone that are in it.
bool MayUsePodGroup(const planner::Snapshot& snapshot);

}  // namespace ringmaster::controllers
