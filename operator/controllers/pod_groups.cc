#include "operator/controllers/pod_groups.h"

#include <algorithm>
#include <utility>

#include "operator/api/labels.h"
#include "operator/controllers/pod_identity.h"

namespace ringmaster::controllers {

using kube::Json;

const std::vector<kube::Resource>& PodGroupVersions() {
  static const std::vector<kube::Resource> kVersions = {
      kube::PodGroups(),                                                 // Kubernetes 1.37
      {"scheduling.k8s.io", "v1alpha3", "podgroups", "PodGroup", true},  // Kubernetes 1.37
      // v1alpha2 of 1.36 is missing because its minCount can't be changed to follow the spec.
  };
  return kVersions;
}

std::optional<kube::Resource> ServedPodGroups(kube::KubeApi& api,
                                              std::vector<std::string> namespaces,
                                              const std::stop_token& stop,
                                              std::chrono::milliseconds pause) {
  return ServedVersion(api, PodGroupVersions(), std::move(namespaces), stop, pause);
}

std::string PodGroupName(const std::string& job, const std::string& uid) {
  return job + "-" + uid.substr(0, 8);
}

Json BuildPodGroup(const api::HorovodJob& job, const kube::Resource& version) {
  Json spec = {
      {"schedulingPolicy", {{"gang", {{"minCount", job.spec.elastic_policy.min_replicas}}}}}};
  // The group gets the priority of its pods, because preemption uses the group's own.
  const Json& pod = job.spec.worker.pod_template.at("spec");
  std::string priority = pod.value("priorityClassName", "");
  if (priority.empty()) priority = job.spec.run_policy.scheduling_policy.priority_class;
  if (!priority.empty()) spec["priorityClassName"] = priority;
  return {{"apiVersion", version.ApiVersion()},
          {"kind", version.kind},
          {"metadata",
           {{"name", PodGroupName(job.name, job.uid)},
            {"namespace", job.ns},
            {"labels",
             {{api::kJobNameLabel, job.name},
              {api::kJobUidLabel, job.uid},
              {api::kManagedByLabel, api::kManagedBy}}},
            {"ownerReferences", Json::array({OwnerReference(job.name, job.uid)})}}},
          {"spec", std::move(spec)}};
}

void KeepWhatIsFixed(const Json& live, Json* wanted) {
  constexpr char kFixed[] = "priorityClassName";
  const Json spec = live.value("spec", Json::object());
  (*wanted)["spec"].erase(kFixed);
  if (spec.contains(kFixed)) (*wanted)["spec"][kFixed] = spec[kFixed];
}

void JoinPodGroup(const api::HorovodJob& job, Json* pod) {
  (*pod)["spec"]["schedulingGroup"] = {{"podGroupName", PodGroupName(job.name, job.uid)}};
}

bool SuitsPodGroup(const api::HorovodJob& job) {
  return job.queue.empty() && job.spec.run_policy.scheduling_policy.topology.label.empty() &&
         job.spec.elastic_policy.allowed_sizes.empty();
}

bool MayUsePodGroup(const planner::Snapshot& snapshot) {
  return SuitsPodGroup(snapshot.job) && !snapshot.queue &&
         std::all_of(snapshot.pods.begin(), snapshot.pods.end(),
                     [](const planner::PodFacts& pod) { return pod.grouped || pod.ended(); });
}

}  // namespace ringmaster::controllers
