#include "operator/controllers/pod_releaser.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <vector>

#include "operator/controllers/finalizers.h"
#include "operator/controllers/pod_facts.h"
#include "operator/controllers/pod_identity.h"

namespace ringmaster::controllers {

using kube::ErrorCode;
using kube::Json;
using runtime::MetaField;

bool PodReleaser::ReleaseOrphans(const std::string& key) {
  const std::size_t slash = key.find('/');
  const std::string ns = key.substr(0, slash), name = key.substr(slash + 1);
  if (name.empty()) return true;  // neither owner nor label: the job is unknown
  const auto cached = jobs_->Get(ns, name);
  const std::string cached_uid = cached == nullptr ? "" : MetaField(*cached, "uid");
  std::vector<runtime::ObjectPtr> orphans;
  for (const auto& pod : pods_->Indexed(ns, key)) {
    const bool owned = !cached_uid.empty() && IsOwnedBy(*pod, cached_uid);
    if (HasFinalizer(*pod) && !owned) orphans.push_back(pod);
  }
  if (orphans.empty()) return true;
  // The cache may not have a young job yet.
  const auto live = api_->Get(kube::HorovodJobs(), ns, name);
  if (!live && live.error().code != ErrorCode::kNotFound) return false;
  const std::string uid = live ? MetaField(*live, "uid") : "";
  bool ok = true;
  for (const auto& pod : orphans) {
    if (!uid.empty() && IsOwnedBy(*pod, uid)) continue;
    spdlog::info("pod released, its job is gone job={} pod={}", key, MetaField(*pod, "name"));
    ok = RemoveFinalizer(*api_, *pod).has_value() && ok;
  }
  return ok;
}

bool PodReleaser::ReleaseDeletedJob(const std::string& key, const Json& job) {
  const bool collected = CollectLatePods(key, job);
  return ReleaseAll(key, MetaField(job, "uid"), false) && collected;
}

// A reconcile that began before the job was deleted may have created pods after the garbage
// collector had looked; they would block a foreground deletion for ever.
bool PodReleaser::CollectLatePods(const std::string& key, const Json& job) {
  const Json finalizers = job.value("/metadata/finalizers"_json_pointer, Json::array());
  if (std::find(finalizers.begin(), finalizers.end(), "foregroundDeletion") == finalizers.end()) {
    return true;
  }
  bool ok = true;
  for (const auto& pod : pods_->Indexed(MetaField(job, "namespace"), key)) {
    if (!IsOwnedBy(*pod, MetaField(job, "uid"))) continue;
    if (!MetaField(*pod, "deletionTimestamp").empty()) continue;
    const auto deleted = api_->Delete(kube::Pods(), MetaField(*pod, "namespace"),
                                      MetaField(*pod, "name"), {.uid = MetaField(*pod, "uid")});
    ok = ok && (deleted || deleted.error().code == ErrorCode::kNotFound ||
                deleted.error().code == ErrorCode::kConflict);
  }
  return ok;
}

bool PodReleaser::ReleaseAll(const std::string& key, const std::string& job_uid, bool only_dead) {
  bool ok = true;
  for (const auto& pod : pods_->Indexed(key.substr(0, key.find('/')), key)) {
    if (!HasFinalizer(*pod) || !IsOwnedBy(*pod, job_uid)) continue;
    const planner::PodFacts facts = ReadPod(*pod);
    const bool may_go = facts.deleting && (facts.proven_dead || !facts.scheduled);
    if (only_dead && !may_go) continue;
    ok = RemoveFinalizer(*api_, *pod).has_value() && ok;
  }
  return ok;
}

}  // namespace ringmaster::controllers
