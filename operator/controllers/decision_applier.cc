#include "operator/controllers/decision_applier.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "common/logging/log.h"
#include "operator/api/labels.h"
#include "operator/controllers/pod_record.h"
#include "operator/planner/snapshot_index.h"
#include "operator/planner/snapshot_queries.h"

namespace ringmaster::controllers {

using kube::Json;

bool DecisionApplier::Apply(const planner::Snapshot& snapshot, const planner::Decision& decision) {
  const api::HorovodJob& job = snapshot.job;
  bool ok = WriteRecord(snapshot, decision);
  ok = Drain(snapshot, decision) && ok;
  ok = Annotate(snapshot, decision) && ok;
  Notify(snapshot, decision);
  ok = Delete(job, decision) && ok;
  // Slow steps come last, so that leaving pods don't wait for pods that are created.
  if (decision.creates.empty() && decision.kept_back == 0) to_.backoff->PodsAreThere(job);
  ok = to_.pods->CreateAll(job, decision.creates, decision.least_creates, decision.useless_alone) &&
       ok;
  ok = Release(job, decision) && ok;
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

bool DecisionApplier::Drain(const planner::Snapshot& snapshot, const planner::Decision& decision) {
  const auto& drains = decision.drains;
  return to_.pods->InBatches(snapshot.job, drains.size(), PodWriter::Rest::kAtOnce,
                             [&](std::size_t i) { return DrainOne(snapshot, drains[i]); });
}

bool DecisionApplier::DrainOne(const planner::Snapshot& snapshot, const planner::PodDrain& drain) {
  const api::HorovodJob& job = snapshot.job;
  const planner::PodFacts* pod = planner::FindPod(snapshot, drain.uid);
  logging::Info("pod drained job={} pod={} node={} reason={} details={}", job.Key(), drain.name,
                pod == nullptr ? "" : pod->node, logging::Value(drain.reason),
                logging::Value(drain.details));
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
  std::map<std::string, std::string> uids;
  for (const planner::PodFacts& pod : snapshot.pods) uids[pod.name] = pod.uid;
  const std::vector<std::pair<std::string, Json>> pods(by_pod.begin(), by_pod.end());
  return to_.pods->InBatches(
      snapshot.job, pods.size(), PodWriter::Rest::kMayWait, [&](std::size_t i) {
        const auto uid = uids.find(pods[i].first);
        return to_.pods->Annotate(snapshot.job, pods[i].first, uid == uids.end() ? "" : uid->second,
                                  pods[i].second);
      });
}

bool DecisionApplier::Delete(const api::HorovodJob& job, const planner::Decision& decision) {
  const auto& pods = decision.deletes;
  const auto rest = decision.deletes_are_one ? PodWriter::Rest::kAtOnce : PodWriter::Rest::kMayWait;
  return to_.pods->InBatches(job, pods.size(), rest,
                             [&](std::size_t i) { return to_.pods->Delete(job, pods[i]); });
}

bool DecisionApplier::Release(const api::HorovodJob& job, const planner::Decision& decision) {
  const auto& pods = decision.releases;
  return to_.pods->InBatches(job, pods.size(), PodWriter::Rest::kMayWait,
                             [&](std::size_t i) { return to_.pods->Release(job, pods[i]); });
}

void DecisionApplier::Notify(const planner::Snapshot& snapshot, const planner::Decision& decision) {
  const planner::WithIndex index(snapshot);
  std::vector<planner::PodNotice> notices = decision.notices;
  // A pod whose annotations don't show its sidecar's registration counts as never having been in
  // a view, so its sidecar must not learn of a view before the annotation is written.
  std::erase_if(notices, [&](const planner::PodNotice& told) {
    return std::holds_alternative<planner::ViewDecidedNotice>(told.notice) &&
           !IsAnnotatedAsRegistered(snapshot, told.pod_uid);
  });
  to_.registry->Notify(snapshot.job.uid, std::move(notices));
}

// The pod's object exists and records that its sidecar has registered.
bool DecisionApplier::IsAnnotatedAsRegistered(const planner::Snapshot& snapshot,
                                              const std::string& uid) const {
  const planner::PodFacts* pod = planner::FindPod(snapshot, uid);
  if (pod == nullptr) return false;
  const auto object = pods_->Get(snapshot.job.ns, pod->name);
  if (object == nullptr) return false;
  const planner::PodFacts& now = RecordOf(object).facts;
  return now.uid == uid && !now.http.empty();
}

// The version keeps a job whose ttlSecondsAfterFinished was changed a moment ago.
bool DecisionApplier::DeleteJob(const api::HorovodJob& job) {
  const auto deleted = api_->Delete(
      kube::HorovodJobs(), job.ns, job.name,
      {.propagation = "Background", .uid = job.uid, .resource_version = job.resource_version});
  return deleted || deleted.error().code == kube::ErrorCode::kNotFound;
}

}  // namespace ringmaster::controllers
