// One look at one job: observe, plan, apply, write status.
//
// Thread rule: Reconcile is safe from any thread, for one job from one thread at a time (the work
// queue sees to that).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "operator/api/horovod_job.h"
#include "operator/controllers/child_objects.h"
#include "operator/controllers/decision_applier.h"
#include "operator/controllers/gang_admission.h"
#include "operator/controllers/job_observer.h"
#include "operator/controllers/job_queue.h"
#include "operator/controllers/job_reader.h"
#include "operator/controllers/job_state_cleaner.h"
#include "operator/controllers/pod_releaser.h"
#include "operator/controllers/provisioning_requests.h"
#include "operator/controllers/status_writer.h"

namespace ringmaster::controllers {

struct JobReconcilerOptions {
  std::string instance;  // the operator's name in events
  runtime::WorkQueueOptions creation_backoff;
  JobObserverOptions observer;
  std::optional<std::chrono::seconds> nodes_within;  // planner::Snapshot::nodes_within
  bool pod_groups = false;                           // jobs that suit them have PodGroups
  PodWriterOptions pods;
  std::size_t most_events_waiting = kMostEventsWaiting;
  runtime::Clock clock;
  Metrics* metrics = nullptr;  // may be null
};

class JobReconciler {
 public:
  // What outlives the reconciler.
  struct Surroundings {
    SidecarRegistry* registry = nullptr;
    QuorumRecordStore* records = nullptr;
    runtime::WorkQueue* queue = nullptr;
    runtime::Informer* jobs = nullptr;
    runtime::Informer* pods = nullptr;
    NodeWatcher* nodes = nullptr;
    AdmissionLoop* admission = nullptr;     // null: no gang admission
    ChildObjects* child_objects = nullptr;  // null: none are kept
    JobQueue* job_queue = nullptr;
    ProvisioningRequests* requests = nullptr;
  };

  JobReconciler(std::shared_ptr<kube::KubeApi> api, const Surroundings& around,
                const JobReconcilerOptions& options);

  // False: look again after a while.
  bool Reconcile(const std::string& key);
  // False: not all events of the looks before are written within `timeout`.
  bool FlushEvents(std::chrono::milliseconds timeout) { return events_.Flush(timeout); }

 private:
  bool ReconcileJob(const api::HorovodJob& job, const kube::Json& object);
  bool KeepChildObjects(const planner::Snapshot& snapshot);
  bool LacksWhatPodsName(const planner::Snapshot& snapshot) const;
  bool WriteStatus(const planner::Snapshot& snapshot, const kube::Json& object,
                   planner::Decision* decision);
  void AfterStatus(const planner::Snapshot& snapshot, const planner::Decision& decision);

  SidecarRegistry* const registry_;
  runtime::WorkQueue* const queue_;
  runtime::Informer* const jobs_;
  ChildObjects* const child_objects_;
  JobQueue* const job_queue_;
  ProvisioningRequests* const requests_;
  const bool pod_groups_;
  JobReader reader_;
  EventWriter events_;
  CreationBackoff backoff_;
  JobObserver observer_;
  PodWriter pod_writer_;
  GangAdmission admission_;
  RecordWriter record_writer_;
  DecisionApplier applier_;
  StatusWriter status_writer_;
  PodReleaser releaser_;
  JobStateCleaner cleaner_;
};

}  // namespace ringmaster::controllers
