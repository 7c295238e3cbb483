#include "operator/controllers/decision_applier.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <variant>

#include "common/logging/log.h"
#include "operator/api/labels.h"
#include "operator/controllers/pod_facts.h"

namespace ringmaster::controllers {
namespace {

std::string UidOf(const planner::Snapshot& snapshot, const std::string& pod) {
  const auto at = std::find_if(snapshot.pods.begin(), snapshot.pods.end(),
                               [&](const planner::PodFacts& p) { return p.name == pod; });
  return at == snapshot.pods.end() ? "" : at->uid;
}

bool NobodyIsGated(const planner::Snapshot& snapshot) {
  return std::none_of(snapshot.pods.begin(), snapshot.pods.end(),
                      [](const planner::PodFacts& pod) { return pod.gated && !pod.leaving(); });
}

}  // namespace

using kube::Json;

bool DecisionApplier::Apply(const planner::Snapshot& snapshot, const planner::Decision& decision) {
  const api::HorovodJob& job = snapshot.job;
  bool ok = WriteRecord(snapshot, decision);
  for (const auto& drain : decision.drains) ok = Drain(snapshot, drain) && ok;
  ok = Annotate(snapshot, decision) && ok;
  Notify(snapshot, decision);
  for (const auto& pod : decision.deletes) ok = to_.pods->Delete(job, pod) && ok;
  // Slow steps come last, so that leaving pods don't wait for pods that are created.
  if (NobodyIsGated(snapshot)) to_.backoff->Worked(job, Needed::kGates);
  ok = to_.pods->AdmitAll(job, decision.admits) && ok;
  ok = to_.pods->CreateAll(job, decision.creates, decision.least_creates, decision.useless_alone) &&
       ok;
  for (const auto& pod : decision.releases) ok = to_.pods->Release(job, pod) && ok;
  if (decision.delete_job) ok = DeleteJob(job) && ok;
  return ok;
}

bool DecisionApplier::WriteRecord(const planner::Snapshot& snapshot,
                                  const planner::Decision& decision) {
  if (decision.first_view == nullptr && decision.recover == 0) {
    // The record could be read, and nothing has to be written.
    to_.backoff->Worked(snapshot.job, Needed::kRecord);
    return true;
  }
  bool ok = true;
  if (decision.first_view != nullptr) {
    ok = to_.record->WriteFirstView(snapshot, decision.first_view);
  }
  if (decision.recover != 0) {
    ok = to_.record->BeginRecovery(snapshot, decision.recover, decision.recover_event) && ok;
  }
  return ok;
}

bool DecisionApplier::Drain(const planner::Snapshot& snapshot, const planner::PodDrain& drain) {
  const api::HorovodJob& job = snapshot.job;
  spdlog::info("pod drained job={} pod={} reason={}", job.Key(), drain.name,
               logging::Value(drain.reason));
  to_.events->EmitEvent(
      job,
      {false, "Draining", fmt::format("pod {} leaves: {}", drain.name, drain.reason), drain.name});
  return to_.pods->Annotate(job, drain.name, drain.uid,
                            {{api::kDrainAnnotation, drain.reason},
                             {api::kDrainSinceAnnotation, api::FormatTime(snapshot.now)}});
}

bool DecisionApplier::Annotate(const planner::Snapshot& snapshot,
                               const planner::Decision& decision) {
  std::map<std::string, Json> by_pod;
  for (const auto& annotation : decision.annotations) {
    by_pod[annotation.name][annotation.key] =
        annotation.value.empty() ? Json() : Json(annotation.value);
  }
  bool ok = true;
  for (const auto& [pod, annotations] : by_pod) {
    ok = to_.pods->Annotate(snapshot.job, pod, UidOf(snapshot, pod), annotations) && ok;
  }
  return ok;
}

void DecisionApplier::Notify(const planner::Snapshot& snapshot, const planner::Decision& decision) {
  for (const auto& [pod_uid, notice] : decision.notices) {
    // A pod whose annotations don't show its sidecar's registration counts as never having been in
    // a view, so its sidecar must not learn of a view before the annotation is written.
    const bool is_view = std::holds_alternative<planner::ViewDecidedNotice>(notice);
    if (is_view && !IsAnnotatedAsRegistered(snapshot, pod_uid)) continue;
    to_.registry->Notify(snapshot.job.uid, pod_uid, notice);
  }
}

// The pod's object exists and records that its sidecar has registered.
bool DecisionApplier::IsAnnotatedAsRegistered(const planner::Snapshot& snapshot,
                                              const std::string& uid) const {
  const auto pod = std::find_if(snapshot.pods.begin(), snapshot.pods.end(),
                                [&](const auto& p) { return p.uid == uid; });
  if (pod == snapshot.pods.end()) return false;
  const auto object = pods_->Get(snapshot.job.ns, pod->name);
  return object != nullptr && runtime::MetaField(*object, "uid") == uid &&
         !ReadPod(*object).http.empty();
}

bool DecisionApplier::DeleteJob(const api::HorovodJob& job) {
  const auto deleted = api_->Delete(kube::HorovodJobs(), job.ns, job.name,
                                    {.propagation = "Background", .uid = job.uid});
  return deleted || deleted.error().code == kube::ErrorCode::kNotFound;
}

}  // namespace ringmaster::controllers
