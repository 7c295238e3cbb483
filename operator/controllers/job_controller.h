// Watches HorovodJobs, their pods and whatever else concerns them, and passes jobs that have
// changed to the reconciler.
//
// Thread rule: Start and Stop from one thread. `workers` threads reconcile, each one job at a time.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "operator/controllers/admission_loop.h"
#include "operator/controllers/child_objects.h"
#include "operator/controllers/job_queue.h"
#include "operator/controllers/job_reconciler.h"
#include "operator/controllers/jobs_by_node.h"
#include "operator/controllers/node_watcher.h"
#include "operator/controllers/pod_options.h"
#include "operator/controllers/provisioning_requests.h"
#include "operator/controllers/quorum_record_store.h"
#include "operator/controllers/sidecar_registry.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/disruption.h"
#include "operator/runtime/informer.h"
#include "operator/runtime/work_queue.h"

namespace ringmaster::controllers {

class Metrics;

struct JobControllerOptions {
  PodOptions pod;
  // Service, PodDisruptionBudget, NetworkPolicy and Secret of each job; none on the local cluster.
  std::optional<ChildObjectOptions> child_objects;
  std::vector<std::string> watch_namespaces;  // empty: all
  // Pods start together or not at all: minReplicas of them must fit on nodes at the same time. This
  // reads all nodes and pods of the cluster.
  bool gang_admission = false;
  bool kueue = false;  // jobs may name a Kueue queue
  // Which jobs' pods may stand Pending so that an autoscaler makes nodes for them, and for how
  // long.
  scheduler::NodeCallRules node_calls;
  std::chrono::seconds nodes_within{900};
  ProvisioningOptions provisioning;  // whether they call by ProvisioningRequests
  std::string instance = "ringmaster-operator";
  // Pods carry the finalizer that keeps them until their death is proven or doesn't matter.
  bool proof_finalizer = true;
  // Only the cloud removes Node objects, after their instances: a missing node then proves death.
  bool trust_node_deletion = false;
  std::vector<std::string> disruption_taints = planner::DefaultDisruptionTaints();
  // How long a pod may be on a node without running containers before the reason is looked for.
  std::chrono::milliseconds preparation_patience{20'000};
  int workers = 2;
  std::chrono::milliseconds sync_timeout{60'000};
  runtime::WorkQueueOptions queue;
  Metrics* metrics = nullptr;     // may be null; else it outlives the controller
  std::size_t calls_at_once = 8;  // when the pods of one job are created
  std::size_t most_events_waiting = kMostEventsWaiting;
  runtime::Clock clock;
};

class JobController {
 public:
  JobController(std::shared_ptr<kube::KubeApi> api, SidecarRegistry* registry,
                QuorumRecordStore* records, JobControllerOptions options);
  ~JobController();

  // Returns when the caches are synced. The error says why they are not, or that `stop` was
  // requested.
  kube::Result<void> Start(std::stop_token stop = {});
  // Returns when the reconciles in progress have ended.
  void Stop();

  // For a simulator without threads and with a clock of its own, instead of Start: call Listen
  // once, Take for each event that a watch would bring, and LookAtNext when a job is due.
  void Listen();
  void Take(const kube::Resource& resource, kube::WatchEvent event);
  std::optional<runtime::WorkQueue::TimePoint> NextLook() const { return queue_.NextDue(); }
  // Reconciles the job that is due, or waits for one. Returns false if `stop` was requested.
  bool LookAtNext(std::stop_token stop = {});

  struct State {
    std::vector<runtime::Informer::State> caches;
    runtime::WorkQueue::Stats queue;
  };
  State state() const;
  // The objects of the caches.
  std::vector<runtime::ObjectPtr> Jobs() const { return jobs_.All(); }
  std::vector<runtime::ObjectPtr> Pods() const { return pods_.All(); }

 private:
  std::vector<const runtime::Informer*> Caches() const;
  kube::Result<void> AwaitCaches(std::stop_token stop);
  runtime::InformerOptions PodCacheOptions() const;
  void OnPod(const kube::Json& pod, bool deleted);
  void OnNode(const std::string& name);
  bool IsPodOfJob(const job::Registration& registration) const;
  std::unique_ptr<ChildObjects> MakeChildObjects();
  JobReconciler MakeReconciler();

  const std::shared_ptr<kube::KubeApi> api_;
  SidecarRegistry* const registry_;
  QuorumRecordStore* const records_;
  const JobControllerOptions options_;
  runtime::WorkQueue queue_;
  std::unique_ptr<AdmissionLoop> admission_;  // null: no gang admission
  JobsByNode jobs_by_node_;
  runtime::Informer jobs_;
  runtime::Informer pods_;  // stores only the pods of jobs
  NodeWatcher nodes_;
  std::unique_ptr<ChildObjects> child_objects_;  // null on the local cluster
  JobQueue job_queue_;
  ProvisioningRequests requests_;
  JobReconciler reconciler_;
  std::vector<std::jthread> threads_;
};

}  // namespace ringmaster::controllers
