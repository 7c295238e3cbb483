#include "operator/controllers/pod_releaser.h"

#include <algorithm>
#include <vector>

#include "common/logging/log.h"
#include "common/sync/parallel.h"
#include "operator/api/object_key.h"
#include "operator/controllers/finalizers.h"
#include "operator/controllers/pod_record.h"

namespace ringmaster::controllers {

using kube::ErrorCode;
using kube::Json;
using runtime::MetaField;

bool PodReleaser::ReleaseOrphans(const std::string& key) {
  const auto [ns, name] = api::ParseKey(key);
  if (name.empty()) return true;  // neither owner nor label: the job is unknown
  const auto cached = jobs_->Get(ns, name);
  const std::string cached_uid = cached == nullptr ? "" : MetaField(*cached, "uid");
  std::vector<runtime::ObjectPtr> orphans;
  for (const auto& pod : pods_->Indexed(ns, key)) {
    const PodRecord& record = RecordOf(pod);
    if (record.facts.has_finalizer && !IsOwnedBy(record, cached_uid)) orphans.push_back(pod);
  }
  if (orphans.empty()) return true;
  // The cache may not have a young job yet.
  const auto live = api_->Get(kube::HorovodJobs(), ns, name);
  if (!live && live.error().code != ErrorCode::kNotFound) return false;
  const std::string uid = live ? MetaField(*live, "uid") : "";
  std::erase_if(orphans, [&](const auto& pod) { return IsOwnedBy(RecordOf(pod), uid); });
  return ForEach(orphans, [&](const Json& pod) {
    logging::Info("pod released, its job is gone job={} pod={}", key, MetaField(pod, "name"));
    return RemoveFinalizer(*api_, pod).has_value();
  });
}

bool PodReleaser::ForEach(const std::vector<runtime::ObjectPtr>& pods,
                          const std::function<bool(const Json& pod)>& call) const {
  return sync::InBatches(pods.size(), calls_at_once_,
                         [&](std::size_t i) { return call(*pods[i]); });
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
  std::vector<runtime::ObjectPtr> late;
  for (const auto& pod : pods_->Indexed(MetaField(job, "namespace"), key)) {
    const PodRecord& record = RecordOf(pod);
    if (IsOwnedBy(record, MetaField(job, "uid")) && !record.facts.deleting) late.push_back(pod);
  }
  return ForEach(late, [&](const Json& pod) {
    const auto deleted = api_->Delete(kube::Pods(), MetaField(pod, "namespace"),
                                      MetaField(pod, "name"), {.uid = MetaField(pod, "uid")});
    return deleted || deleted.error().code == ErrorCode::kNotFound ||
           deleted.error().code == ErrorCode::kConflict;
  });
}

bool PodReleaser::ReleaseAll(const std::string& key, const std::string& job_uid, bool only_dead) {
  std::vector<runtime::ObjectPtr> go;
  for (const auto& pod : pods_->Indexed(api::ParseKey(key).ns, key)) {
    const PodRecord& record = RecordOf(pod);
    const planner::PodFacts& facts = record.facts;
    if (!facts.has_finalizer || !IsOwnedBy(record, job_uid)) continue;
    const bool may_go = facts.deleting && (facts.proven_dead || !facts.scheduled);
    if (!only_dead || may_go) go.push_back(pod);
  }
  return ForEach(go, [&](const Json& pod) { return RemoveFinalizer(*api_, pod).has_value(); });
}

}  // namespace ringmaster::controllers
