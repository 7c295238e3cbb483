// PodGroups of Kubernetes (scheduling.k8s.io, behind the feature gate GenericWorkload): if an API
// server serves them, the scheduler itself keeps the pods of a job together, and they need no gate
// of ours (docs/scheduling.md).
//
// Pure, except ServedPodGroups.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/api/horovod_job.h"
#include "operator/controllers/served_version.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/snapshot.h"

namespace ringmaster::controllers {

// The versions that this operator supports, the newest first.
const std::vector<kube::Resource>& PodGroupVersions();
// The newest of these versions that is served: see ServedVersion.
std::optional<kube::Resource> ServedPodGroups(
    kube::KubeApi& api, std::vector<std::string> namespaces, const std::stop_token& stop,
    std::chrono::milliseconds pause = std::chrono::seconds(1));

// The name contains the beginning of the job's uid: Kubernetes keeps a group as long as a pod names
// it, so without the uid a job that is created anew would share the group of the job before.
std::string PodGroupName(const std::string& job, const std::string& uid);
kube::Json BuildPodGroup(const api::HorovodJob& job, const kube::Resource& version);
// Copies the fields that the API server doesn't allow to change from the existing group.
void KeepWhatIsFixed(const kube::Json& live, kube::Json* wanted);
// Puts the pod into the job's group. The group must exist: without it the pod would never start.
void JoinPodGroup(const api::HorovodJob& job, kube::Json* pod);

// The scheduler alone can place this job. That is not so if a queue decides, or if the job asks for
// something that only the operator's own admission offers.
bool SuitsPodGroup(const api::HorovodJob& job);
// In addition, none of the job's pods was created without a group: a group counts only its own
// pods.
bool MayUsePodGroup(const planner::Snapshot& snapshot);

}  // namespace ringmaster::controllers
