// Reconciles HorovodJobs: observe once, plan, apply, one status write, events.
//
// Thread rule: Start and Stop from one thread. `workers` threads reconcile, one job at a time each.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "operator/controllers/pod_builder.h"
#include "operator/controllers/record_store.h"
#include "operator/controllers/sidecar_hub.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/decision.h"
#include "operator/planner/disruption.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/informer.h"
#include "operator/runtime/work_queue.h"

namespace ringmaster::controllers {

struct JobControllerOptions {
  PodOptions pod;
  std::string watch_namespace;  // empty: all
  std::string instance = "ringmaster-operator";
  // Pods carry the finalizer that keeps them until their death is proven or doesn't matter.
  bool proof_finalizer = true;
  // Node objects are removed by the cloud alone, after their instances: a node that is gone is
  // proof then.
  bool trust_node_deletion = false;
  std::vector<std::string> disruption_taints = planner::DefaultDisruptionTaints();
  int workers = 2;
  std::chrono::milliseconds sync_timeout{60'000};
  runtime::WorkQueueOptions queue;
};

class JobController {
 public:
  JobController(std::shared_ptr<kube::KubeApi> api, SidecarHub* hub, RecordStore* records,
                JobControllerOptions options);
  ~JobController();

  // Returns when the caches hold what the API server has; the error says why they don't.
  kube::Result<void> Start();
  void Stop();

 private:
  void StartNodes();
  void Work(std::stop_token stop);
  // False: look again after a while.
  bool Reconcile(const std::string& key);
  bool ReconcileJob(const api::HorovodJob& job, const kube::Json& object);
  kube::Result<planner::Snapshot> Observe(const api::HorovodJob& job);
  void ObserveNodes(planner::Snapshot* snapshot);
  bool InstanceIsGone(const planner::PodFacts& pod);
  void OnNode(const kube::Json& node, bool deleted);
  bool Apply(const planner::Snapshot& snapshot, const planner::Decision& decision);
  bool CreatePod(const api::HorovodJob& job, const planner::PodCreate& create);
  bool Annotate(const api::HorovodJob& job, const std::string& pod, const kube::Json& annotations);
  bool DeletePod(const api::HorovodJob& job, const planner::PodDelete& pod);
  bool ReleasePod(const api::HorovodJob& job, const planner::PodRelease& pod);
  // Pods that no job (any more) waits for: of `job_uid`, or of none that exists.
  bool ReleaseOrphans(const std::string& key);
  bool ReleaseAll(const std::string& key, const std::string& job_uid, bool only_dead);
  bool WriteStatus(const api::HorovodJob& job, kube::Json object, const api::Status& status);
  bool RefuseJob(const kube::Json& object, const std::string& why);
  void Say(const api::HorovodJob& job, const planner::Event& event);

  const std::shared_ptr<kube::KubeApi> api_;
  SidecarHub* const hub_;
  const JobControllerOptions options_;
  RecordStore* const records_;
  runtime::EventRecorder events_;
  runtime::WorkQueue queue_;
  runtime::Informer jobs_;
  runtime::Informer pods_;
  runtime::Informer nodes_;
  bool nodes_readable_ = false;                     // constant after Start
  std::map<std::string, planner::NodeFacts> seen_;  // by name; thread of nodes_ only
  std::vector<std::jthread> threads_;
};

}  // namespace ringmaster::controllers
