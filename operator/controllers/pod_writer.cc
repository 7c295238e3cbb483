#include "operator/controllers/pod_writer.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "common/logging/log.h"
#include "operator/api/labels.h"
#include "operator/controllers/finalizers.h"
#include "operator/controllers/node_affinity.h"
#include "operator/controllers/pod_annotations.h"
#include "operator/controllers/pod_builder.h"
#include "operator/controllers/pod_identity.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {

using kube::ErrorCode;
using kube::Json;
using runtime::MetaField;

PodWriter::PodWriter(std::shared_ptr<kube::KubeApi> api, const Caches& caches,
                     runtime::WorkQueue* queue, CreationBackoff* backoff, EventWriter* events,
                     PodWriterOptions options)
    : api_(std::move(api)),
      pods_(caches.pods),
      capacity_(caches.capacity),
      queue_(queue),
      backoff_(backoff),
      events_(events),
      options_(std::move(options)) {}

bool PodWriter::CreateAll(const api::HorovodJob& job,
                          const std::vector<planner::PodCreate>& creates) {
  if (creates.empty()) {
    backoff_->Worked(job, Needed::kPods);  // nobody wants any
    return true;
  }
  if (backoff_->Waits(job, Needed::kPods)) return true;
  for (const auto& create : creates) {
    // What the first is refused for, the others would be too.
    if (!Create(job, create)) return backoff_->Waits(job, Needed::kPods);
  }
  return true;
}

bool PodWriter::Create(const api::HorovodJob& job, const planner::PodCreate& create) {
  Json pod = BuildPod(job, create.index, options_.pod);
  DropOwnAnnotations(pod);
  if (options_.proof_finalizer) AddFinalizer(pod);
  AvoidNodes(pod, create.avoid);
  KeepOffNodes(pod, create.keep_off);
  WriteAnnounced(pod, create.announced);
  const std::string name = planner::PodName(job.name, create.index);
  const auto created = api_->CreateWith(kube::Pods(), job.ns, pod, {.field_validation = "Strict"});
  if (created) {
    pods_->Observe(*created);
    events_->EmitEvent(
        job, {false, "PodCreated", fmt::format("pod {} created {}", name, create.reason), ""});
    return true;
  }
  return NotCreated(job, create, created.error());
}

bool PodWriter::NotCreated(const api::HorovodJob& job, const planner::PodCreate& create,
                           const kube::Error& error) {
  const std::string name = planner::PodName(job.name, create.index);
  if (error.code == ErrorCode::kAlreadyExists) {
    // Ours, and the cache is behind: it comes with the next watch event. Or somebody else's: then
    // it stays in the way.
    const auto other = api_->Get(kube::Pods(), job.ns, name);
    if (other && IsOwnedBy(*other, job.uid)) {
      if (!HasLabels(*other, LabelsOf(job, create.index))) {
        return Relabel(job, *other, create.index);
      }
      if (pods_->Observe(*other)) queue_->Add(job.Key());
      return true;
    }
    // It goes by itself, or has just gone: nothing that people have to hear of, unless they ask.
    const bool gone = !other && other.error().code == ErrorCode::kNotFound;
    if (gone || (other && !MetaField(*other, "deletionTimestamp").empty())) {
      backoff_->NameIsTaken(job, name);
      return false;
    }
  }
  spdlog::warn("pod not created job={} pod={} error={}", job.Key(), name,
               logging::Value(error.message));
  backoff_->Failed(job, Needed::kPods, error,
                   {true, "FailedCreate",
                    fmt::format("pod {} could not be created: {}", name, error.message), ""});
  return false;
}

// Somebody has taken labels off pods of the job, by which they are found. Without the label of the
// role a pod is not even in the cache, but its sidecar has been heard.
bool PodWriter::RestoreLabels(const api::HorovodJob& job,
                              const std::vector<planner::SidecarFacts>& sidecars) {
  bool ok = true;
  for (const auto& pod : pods_->InNamespace(job.ns)) {
    const auto index = IndexOf(job, MetaField(*pod, "name"));
    if (!index || !IsOwnedBy(*pod, job.uid) || HasLabels(*pod, LabelsOf(job, *index))) continue;
    ok = Relabel(job, *pod, *index) && ok;
  }
  for (const planner::SidecarFacts& sidecar : sidecars) {
    const auto index = IndexOf(job, sidecar.pod_name);
    const auto cached = pods_->Get(job.ns, sidecar.pod_name);
    if (!index || cached != nullptr) continue;
    const auto live = api_->Get(kube::Pods(), job.ns, sidecar.pod_name);
    if (!live || !IsOwnedBy(*live, job.uid)) continue;
    // The job is looked at again when the cache has it.
    if (!HasLabels(*live, LabelsOf(job, *index))) (void)Relabel(job, *live, *index);
    ok = false;
  }
  return ok;
}

bool PodWriter::Relabel(const api::HorovodJob& job, const Json& pod, int index) {
  const Json labels = LabelsOf(job, index);
  const std::string name = MetaField(pod, "name");
  const auto patched =
      api_->Patch(kube::Pods(), job.ns, name,
                  {{"metadata", {{"uid", MetaField(pod, "uid")}, {"labels", labels}}}}, {});
  // Something between us and the store may take them off each time.
  if (!patched || !HasLabels(*patched, labels)) {
    spdlog::warn("pod not labelled job={} pod={} error={}", job.Key(), name,
                 logging::Value(patched ? "it is written without them" : patched.error().message));
    return false;
  }
  spdlog::warn("labels of a pod were missing and are there again job={} pod={}", job.Key(), name);
  pods_->Observe(*patched);
  return true;
}

bool PodWriter::Admit(const api::HorovodJob& job, const planner::PodAdmit& pod) {
  const auto object = pods_->Get(job.ns, pod.name);
  if (object == nullptr || MetaField(*object, "uid") != pod.uid) return true;
  // Other gates are other people's. The version keeps us from taking away one that has just come.
  Json gates = Json::array();
  for (const Json& gate : object->value("/spec/schedulingGates"_json_pointer, Json::array())) {
    if (gate.value("name", "") != api::kGangGate) gates.push_back(gate);
  }
  const auto patched =
      api_->Patch(kube::Pods(), job.ns, pod.name,
                  {{"metadata", {{"resourceVersion", MetaField(*object, "resourceVersion")}}},
                   {"spec", {{"schedulingGates", gates}}}},
                  {});
  if (patched) {
    pods_->Observe(*patched);
    if (capacity_ != nullptr) capacity_->Observe(*patched);
    return true;
  }
  if (patched.error().code == ErrorCode::kNotFound) return true;
  if (patched.error().code != ErrorCode::kConflict) {
    spdlog::warn("pod not admitted job={} pod={} error={}", job.Key(), pod.name,
                 logging::Value(patched.error().message));
  }
  return false;
}

bool PodWriter::Annotate(const api::HorovodJob& job, const std::string& pod, const std::string& uid,
                         const Json& annotations) {
  // Another pod may have the name by now, and what is said of this one would be said of that.
  const Json patch = {{"metadata", {{"uid", uid}, {"annotations", annotations}}}};
  const auto patched = api_->Patch(kube::Pods(), job.ns, pod, patch, {});
  if (patched) {
    pods_->Observe(*patched);
    queue_->Add(job.Key());
    return true;
  }
  const ErrorCode code = patched.error().code;
  if (code == ErrorCode::kNotFound) return true;
  // The cache is behind, and comes up.
  if (code == ErrorCode::kConflict) return false;
  spdlog::warn("pod not marked job={} pod={} error={}", job.Key(), pod,
               logging::Value(patched.error().message));
  return false;
}

bool PodWriter::Delete(const api::HorovodJob& job, const planner::PodDelete& pod) {
  const auto deleted = api_->Delete(kube::Pods(), job.ns, pod.name, {.uid = pod.uid});
  if (deleted) {
    spdlog::info("pod deleted job={} pod={} reason={}", job.Key(), pod.name,
                 logging::Value(pod.reason));
    return true;
  }
  // Not there any more, or a newer pod of that name: either way this one is gone.
  const ErrorCode code = deleted.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kConflict) return true;
  spdlog::warn("pod not deleted job={} pod={} error={}", job.Key(), pod.name,
               logging::Value(deleted.error().message));
  return false;
}

bool PodWriter::Release(const api::HorovodJob& job, const planner::PodRelease& pod) {
  const auto object = pods_->Get(job.ns, pod.name);
  if (object == nullptr || MetaField(*object, "uid") != pod.uid) return true;
  if (pod.at_once) {
    const auto deleted =
        api_->Delete(kube::Pods(), job.ns, pod.name, {.grace_period_seconds = 0, .uid = pod.uid});
    if (!deleted && deleted.error().code != ErrorCode::kNotFound) {
      spdlog::warn("pod not deleted job={} pod={} error={}", job.Key(), pod.name,
                   logging::Value(deleted.error().message));
      return false;
    }
  }
  const auto removed = RemoveFinalizer(*api_, *object, pod.as_seen);
  if (removed) {
    spdlog::info("pod may go job={} pod={} reason={}", job.Key(), pod.name,
                 logging::Value(pod.reason));
    return true;
  }
  // What has changed about it is on its way to the cache: decide again from that.
  if (pod.as_seen && removed.error().code == ErrorCode::kConflict) return false;
  spdlog::warn("pod not released job={} pod={} error={}", job.Key(), pod.name,
               logging::Value(removed.error().message));
  return false;
}

}  // namespace ringmaster::controllers
