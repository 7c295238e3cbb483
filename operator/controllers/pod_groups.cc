#include "operator/controllers/pod_groups.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "common/logging/log.h"
#include "common/sync/pause.h"
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

namespace {

using Served = std::optional<kube::Resource>;

kube::Result<void> MayList(kube::KubeApi& api, const kube::Resource& version,
                           const std::vector<std::string>& namespaces) {
  for (const std::string& ns : namespaces) {
    const auto listed =
        api.ListAll(version, ns, {.label_selector = "ringmaster.dev/none", .chunk = 1});
    if (!listed) return tl::unexpected(listed.error());
  }
  return {};
}

kube::Result<Served> AskForPodGroups(kube::KubeApi& api,
                                     const std::vector<std::string>& namespaces) {
  for (const kube::Resource& version : PodGroupVersions()) {
    const auto may = MayList(api, version, namespaces);
    if (may) return version;
    if (may.error().code != kube::ErrorCode::kNotFound) return tl::unexpected(may.error());
  }
  return std::nullopt;
}

}  // namespace

Served ServedPodGroups(kube::KubeApi& api, std::vector<std::string> namespaces,
                       const std::stop_token& stop, std::chrono::milliseconds pause) {
  if (namespaces.empty()) namespaces.emplace_back();
  for (int asking = 1;; ++asking) {
    const kube::Result<Served> served = AskForPodGroups(api, namespaces);
    if (served) return *served;
    // A refusal may be temporary, except 403, which is about our rights.
    const bool last = asking >= kAskings || served.error().http_status == 403;
    spdlog::warn("PodGroups support not known asking_again={} error={}", !last,
                 logging::Value(served.error().message));
    if (last || stop.stop_requested()) return std::nullopt;
    sync::Pause(stop, pause);
  }
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
