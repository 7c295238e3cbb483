// What the controller does to pods: makes, admits, marks, deletes them, and lets them go.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "common/logging/log.h"
#include "operator/controllers/job_controller.h"
#include "operator/controllers/pod_marks.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {

using kube::ErrorCode;
using kube::Json;
using runtime::MetaField;

bool JobController::CreatePods(const api::HorovodJob& job,
                               const std::vector<planner::PodCreate>& creates) {
  if (creates.empty()) {
    problems_.Worked(job, Needed::kPods);  // nobody wants any
    return true;
  }
  if (Pauses(job, Needed::kPods)) return true;
  for (const auto& create : creates) {
    // What the first is refused for, the others would be too.
    if (!CreatePod(job, create)) return Pauses(job, Needed::kPods);
  }
  return true;
}

bool JobController::Pauses(const api::HorovodJob& job, Needed what) {
  const auto pause = problems_.Pause(job, what, CreationProblems::Clock::now());
  if (pause.count() > 0) queue_.AddAfter(job.Key(), pause);
  return pause.count() > 0;
}

void JobController::Missed(const api::HorovodJob& job, Needed what, const kube::Error& error,
                           const planner::Event& event) {
  problems_.Failed(job, what, error, CreationProblems::Clock::now());
  // No event can be written there any more either.
  if (!NamespaceGoes(error)) Say(job, event);
}

// Somebody has taken labels off pods of the job, by which they are found. Without the label of the
// role a pod is not even in the cache, but its sidecar has been heard.
bool JobController::RestoreLabels(const api::HorovodJob& job) {
  bool ok = true;
  for (const auto& pod : pods_.InNamespace(job.ns)) {
    const auto index = IndexOf(job, MetaField(*pod, "name"));
    if (!index || !IsOwnedBy(*pod, job.uid) || HasLabels(*pod, LabelsOf(job, *index))) continue;
    ok = Relabel(job, *pod, *index) && ok;
  }
  for (const planner::SidecarFacts& sidecar : hub_->Facts(job.uid).sidecars) {
    const auto index = IndexOf(job, sidecar.pod_name);
    const auto cached = pods_.Get(job.ns, sidecar.pod_name);
    if (!index || cached != nullptr) continue;
    const auto live = api_->Get(kube::Pods(), job.ns, sidecar.pod_name);
    if (!live || !IsOwnedBy(*live, job.uid)) continue;
    // The job is looked at again when the cache has it.
    if (!HasLabels(*live, LabelsOf(job, *index))) (void)Relabel(job, *live, *index);
    ok = false;
  }
  return ok;
}

bool JobController::Relabel(const api::HorovodJob& job, const Json& pod, int index) {
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
  pods_.Observe(*patched);
  return true;
}

bool JobController::CreatePod(const api::HorovodJob& job, const planner::PodCreate& create) {
  Json pod = BuildPod(job, create.index, options_.pod);
  DropOperatorsMarks(pod);
  if (options_.proof_finalizer) AddFinalizer(pod);
  AvoidNodes(pod, create.avoid);
  KeepOffNodes(pod, create.keep_off);
  WriteAnnounced(pod, create.announced);
  const std::string name = planner::PodName(job.name, create.index);
  const auto created = api_->CreateWith(kube::Pods(), job.ns, pod, {.field_validation = "Strict"});
  if (created) {
    pods_.Observe(*created);
    Say(job, {false, "PodCreated", fmt::format("pod {} created {}", name, create.reason), ""});
    return true;
  }
  if (created.error().code == ErrorCode::kAlreadyExists) {
    // Ours, and the cache is behind: it comes with the next watch event. Or somebody else's: then
    // it stays in the way.
    const auto other = api_->Get(kube::Pods(), job.ns, name);
    if (other && IsOwnedBy(*other, job.uid)) {
      if (!HasLabels(*other, LabelsOf(job, create.index))) {
        return Relabel(job, *other, create.index);
      }
      if (pods_.Observe(*other)) queue_.Add(job.Key());
      return true;
    }
    // It goes by itself, or has just gone: nothing that people have to hear of, unless they ask.
    const bool gone = !other && other.error().code == ErrorCode::kNotFound;
    if (gone || (other && !MetaField(*other, "deletionTimestamp").empty())) {
      problems_.NameIsTaken(job, name, CreationProblems::Clock::now());
      return false;
    }
  }
  spdlog::warn("pod not created job={} pod={} error={}", job.Key(), name,
               logging::Value(created.error().message));
  Missed(job, Needed::kPods, created.error(),
         {true, "FailedCreate",
          fmt::format("pod {} could not be created: {}", name, created.error().message), ""});
  return false;
}

std::optional<planner::RoomFacts> JobController::RoomFor(const planner::Snapshot& snapshot) {
  std::vector<Json> gated;
  for (const planner::PodFacts& pod : snapshot.pods) {
    if (!pod.gated || pod.leaving() || pod.ended()) continue;
    if (const auto object = pods_.Get(snapshot.job.ns, pod.name)) gated.push_back(*object);
  }
  const scheduler::GangFit fit = room_->FitTogether(gated);
  return planner::RoomFacts{fit.fit, fit.why};
}

bool JobController::Admit(const api::HorovodJob& job, const planner::PodAdmit& pod) {
  const auto object = pods_.Get(job.ns, pod.name);
  if (object == nullptr || MetaField(*object, "uid") != pod.uid) return true;
  // Other gates are other people's. The version keeps us from taking away one that has just come.
  Json gates = Json::array();
  for (const Json& gate : object->value("/spec/schedulingGates"_json_pointer, Json::array())) {
    if (gate.value("name", "") != planner::kGangGate) gates.push_back(gate);
  }
  const auto patched =
      api_->Patch(kube::Pods(), job.ns, pod.name,
                  {{"metadata", {{"resourceVersion", MetaField(*object, "resourceVersion")}}},
                   {"spec", {{"schedulingGates", gates}}}},
                  {});
  if (patched) {
    pods_.Observe(*patched);
    if (room_ != nullptr) room_->Observe(*patched);
    return true;
  }
  if (patched.error().code == ErrorCode::kNotFound) return true;
  if (patched.error().code != ErrorCode::kConflict) {
    spdlog::warn("pod not admitted job={} pod={} error={}", job.Key(), pod.name,
                 logging::Value(patched.error().message));
  }
  return false;
}

bool JobController::Annotate(const api::HorovodJob& job, const std::string& pod,
                             const std::string& uid, const Json& annotations) {
  // Another pod may have the name by now, and what is said of this one would be said of that.
  const Json patch = {{"metadata", {{"uid", uid}, {"annotations", annotations}}}};
  const auto patched = api_->Patch(kube::Pods(), job.ns, pod, patch, {});
  if (patched) {
    pods_.Observe(*patched);
    queue_.Add(job.Key());
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

bool JobController::DeletePod(const api::HorovodJob& job, const planner::PodDelete& pod) {
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

bool JobController::ReleasePod(const api::HorovodJob& job, const planner::PodRelease& pod) {
  const auto object = pods_.Get(job.ns, pod.name);
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

bool JobController::ReleaseOrphans(const std::string& key) {
  const std::size_t slash = key.find('/');
  const std::string ns = key.substr(0, slash), name = key.substr(slash + 1);
  if (name.empty()) return true;  // without owner and label: whose it is nobody knows
  const auto cached = jobs_.Get(ns, name);
  const std::string cached_uid = cached == nullptr ? "" : MetaField(*cached, "uid");
  std::vector<runtime::ObjectPtr> orphans;
  for (const auto& pod : pods_.InNamespace(ns)) {
    const bool owned = !cached_uid.empty() && IsOwnedBy(*pod, cached_uid);
    if (JobKeyOf(*pod) == key && HasFinalizer(*pod) && !owned) orphans.push_back(pod);
  }
  if (orphans.empty()) return true;
  // The cache may not know a young job yet.
  const auto live = api_->Get(kube::HorovodJobs(), ns, name);
  if (!live && live.error().code != ErrorCode::kNotFound) return false;
  const std::string uid = live ? MetaField(*live, "uid") : "";
  bool ok = true;
  for (const auto& pod : orphans) {
    if (!uid.empty() && IsOwnedBy(*pod, uid)) continue;
    spdlog::info("pod may go, its job is gone job={} pod={}", key, MetaField(*pod, "name"));
    ok = RemoveFinalizer(*api_, *pod).has_value() && ok;
  }
  return ok;
}

// A reconcile that had begun before the job was deleted may have made pods after the garbage
// collector had looked; they would hold a foreground deletion for ever.
bool JobController::CollectLatePods(const Json& job) {
  const Json finalizers = job.value("/metadata/finalizers"_json_pointer, Json::array());
  if (std::find(finalizers.begin(), finalizers.end(), "foregroundDeletion") == finalizers.end()) {
    return true;
  }
  bool ok = true;
  for (const auto& pod : pods_.InNamespace(MetaField(job, "namespace"))) {
    if (!IsOwnedBy(*pod, MetaField(job, "uid"))) continue;
    if (!MetaField(*pod, "deletionTimestamp").empty()) continue;
    const auto deleted = api_->Delete(kube::Pods(), MetaField(*pod, "namespace"),
                                      MetaField(*pod, "name"), {.uid = MetaField(*pod, "uid")});
    ok = ok && (deleted || deleted.error().code == ErrorCode::kNotFound ||
                deleted.error().code == ErrorCode::kConflict);
  }
  return ok;
}

bool JobController::ReleaseAll(const std::string& key, const std::string& job_uid, bool only_dead) {
  bool ok = true;
  for (const auto& pod : pods_.InNamespace(key.substr(0, key.find('/')))) {
    if (!HasFinalizer(*pod) || !IsOwnedBy(*pod, job_uid)) continue;
    const planner::PodFacts facts = ReadPod(*pod);
    const bool may_go = facts.deleting && (facts.proven_dead || !facts.scheduled);
    if (only_dead && !may_go) continue;
    ok = RemoveFinalizer(*api_, *pod).has_value() && ok;
  }
  return ok;
}

}  // namespace ringmaster::controllers
