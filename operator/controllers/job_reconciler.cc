#include "operator/controllers/job_reconciler.h"

#include <set>

#include "common/fields/fields.h"
#include "common/logging/log.h"
#include "operator/api/managed_by.h"
#include "operator/api/object_key.h"
#include "operator/controllers/metrics.h"
#include "operator/controllers/pod_groups.h"

namespace ringmaster::controllers {

using kube::Json;
using runtime::MetaField;

namespace {

bool NoPodLives(const planner::Snapshot& snapshot) {
  return std::all_of(snapshot.pods.begin(), snapshot.pods.end(),
                     [](const planner::PodFacts& pod) { return pod.ended(); });
}

}  // namespace

JobReconciler::JobReconciler(std::shared_ptr<kube::KubeApi> api, const Surroundings& around,
                             const JobReconcilerOptions& options)
    : registry_(around.registry),
      queue_(around.queue),
      jobs_(around.jobs),
      child_objects_(around.child_objects),
      job_queue_(around.job_queue),
      requests_(around.requests),
      pod_groups_(options.pod_groups && around.child_objects != nullptr),
      events_(
          api, options.instance, around.pods,
          [metrics = options.metrics] {
            if (metrics != nullptr) metrics->EventDropped();
          },
          options.most_events_waiting),
      backoff_(options.creation_backoff, around.queue, &events_, options.clock),
      observer_(api, {around.registry, around.records, around.pods, around.nodes}, around.queue,
                options.observer),
      pod_writer_(api, {around.pods, around.jobs}, around.queue, &backoff_, &events_, options.pods),
      admission_(api, {around.admission, around.pods, &pod_writer_, &backoff_}, options.pods.pod,
                 options.nodes_within, options.clock),
      record_writer_(around.records, &observer_, &backoff_, &events_, around.queue),
      applier_(api, around.pods,
               {&pod_writer_, &record_writer_, around.registry, &backoff_, &events_}),
      status_writer_(api, around.jobs, &events_, &backoff_, options.metrics, options.clock),
      releaser_(api, around.jobs, around.pods, options.pods.calls_at_once),
      cleaner_({around.registry, around.records, &observer_, &backoff_, around.child_objects,
                options.metrics}) {}

bool JobReconciler::Reconcile(const std::string& key) {
  const api::ObjectKey named = api::ParseKey(key);
  const auto object = jobs_->Get(named.ns, named.name);
  const std::string uid = object == nullptr ? "" : MetaField(*object, "uid");
  cleaner_.Forget(key, uid);
  const bool released = releaser_.ReleaseOrphans(key);
  if (object == nullptr) {
    reader_.Forget(key);
    admission_.Forget(key);
    return released;
  }
  if (!api::ForeignManagerOf(*object).empty()) {
    admission_.Forget(key);
    return released;
  }
  const auto read = reader_.Read(key, object);
  if (!read) {
    admission_.Forget(key);
    const bool deleting = !MetaField(*object, "deletionTimestamp").empty();
    const bool dead_released = releaser_.ReleaseUnreadableJob(key, uid, deleting);
    return status_writer_.WriteInvalid(*object, api::ToString(read.error())) && dead_released &&
           released;
  }
  const api::HorovodJob& job = **read;
  if (job.deleting) {
    admission_.Forget(key);
    registry_->Dismiss(job.uid);
    return releaser_.ReleaseDeletedJob(key, *object) && released;
  }
  return ReconcileJob(job, *object) && released;
}

bool JobReconciler::ReconcileJob(const api::HorovodJob& job, const Json& object) {
  // A pod that is not found would get a successor while it trains.
  if (!pod_writer_.RestoreLabels(job, registry_->Facts(job.uid).sidecars)) {
    admission_.Forget(job.Key());  // nobody knows when it will take what it was granted
    return false;
  }
  auto snapshot = observer_.Observe(job);
  if (!snapshot) {
    logging::Warn("job not observed job={} error={}", job.Key(),
                  logging::Value(snapshot.error().message));
    status_writer_.WriteRecordUnreadable(job, object, snapshot.error());
    admission_.Forget(job.Key());
    return false;
  }
  JobQueue::Answer in_queue = job_queue_->Look(*snapshot);
  snapshot->queue = std::move(in_queue.state);
  snapshot->grouped = pod_groups_ && MayUsePodGroup(*snapshot);
  const bool kept = KeepChildObjects(*snapshot);
  if (child_objects_ != nullptr && child_objects_->PodGroupIsRefused(job) &&
      NoPodLives(*snapshot)) {
    snapshot->grouped = false;  // our own admission keeps its pods together
  }
  snapshot->requests = requests_->Look(*snapshot);
  if (in_queue.look_again) queue_->AddAfter(job.Key(), *in_queue.look_again);
  const bool lacking = LacksWhatPodsName(*snapshot);
  // A job that can't have pods now must not hold room that others could use.
  snapshot->creation_waits = lacking || backoff_.PodsWait(job);
  planner::Decision decision = admission_.Plan(&*snapshot);
  if (lacking) decision.creates.clear();
  if (decision.status_first && !WriteStatus(*snapshot, object, &decision)) return false;
  const bool applied = applier_.Apply(*snapshot, decision) && kept;
  if (!snapshot->creation_waits && backoff_.PodsArePaused(job)) {
    // What could not be made leaves its room to others meanwhile. The next look asks for the rest.
    admission_.Forget(job.Key());
    queue_->Add(job.Key());
  }
  if (decision.delete_job) return applied;
  if (!decision.status_first && !WriteStatus(*snapshot, object, &decision)) return false;
  AfterStatus(*snapshot, decision);
  // Nothing of a job that trains waits for this.
  return requests_->Apply(*snapshot, decision, {&backoff_, &events_}) && applied;
}

// Pods that name a group that is not there never start, and where an earlier job of this name has
// left its Secret they would start with that one's. So none is made before both are there.
bool JobReconciler::LacksWhatPodsName(const planner::Snapshot& snapshot) const {
  if (child_objects_ == nullptr || !snapshot.job.status.completion_time.empty()) return false;
  return (snapshot.grouped && !child_objects_->HasPodGroup(snapshot.job)) ||
         !child_objects_->HasSecret(snapshot.job);
}

bool JobReconciler::KeepChildObjects(const planner::Snapshot& snapshot) {
  const api::HorovodJob& job = snapshot.job;
  // Of a job that has ended they stay as they are until it is deleted.
  if (child_objects_ == nullptr || !job.status.completion_time.empty()) return true;
  if (backoff_.Waits(job, Needed::kObjects)) return true;
  const ChildObjects::Outcome outcome = child_objects_->Keep(job, snapshot.grouped);
  if (outcome.look_again) queue_->AddAfter(job.Key(), *outcome.look_again);
  if (outcome.problems.empty()) {
    backoff_.Worked(job, Needed::kObjects);
    return true;
  }
  for (const kube::Error& problem : outcome.problems) {
    logging::Warn("object of the job not written job={} error={}", job.Key(),
                  logging::Value(problem.message));
    backoff_.FailedWithEvent(job, Needed::kObjects, problem, "FailedObject");
  }
  return backoff_.Waits(job, Needed::kObjects);
}

bool JobReconciler::WriteStatus(const planner::Snapshot& snapshot, const Json& object,
                                planner::Decision* decision) {
  const api::HorovodJob& job = snapshot.job;
  backoff_.Show(job, !snapshot.pods.empty(), api::FormatTime(snapshot.now), &decision->status);
  return status_writer_.Write(job, object, decision->status);
}

// What is in the status now need not be kept; events tell only of what is written.
void JobReconciler::AfterStatus(const planner::Snapshot& snapshot,
                                const planner::Decision& decision) {
  const api::HorovodJob& job = snapshot.job;
  registry_->ExitsCounted(job.uid, decision.exits_counted);
  for (const planner::Event& event : decision.events) events_.EmitEvent(job, event);
  std::set<std::string> pod_uids;
  for (const planner::PodFacts& pod : snapshot.pods) pod_uids.insert(pod.uid);
  registry_->Retain(job.uid, pod_uids);
  if (decision.look_again) queue_->AddAfter(job.Key(), *decision.look_again);
}

}  // namespace ringmaster::controllers
