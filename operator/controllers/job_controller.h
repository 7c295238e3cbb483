// Reconciles HorovodJobs: observe once, plan, apply, one status write, events.
//
// Thread rule: Start and Stop from one thread. `workers` threads reconcile, one job at a time each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "operator/controllers/pod_builder.h"
#include "operator/controllers/record_store.h"
#include "operator/controllers/room.h"
#include "operator/controllers/sidecar_hub.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/decision.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/informer.h"
#include "operator/runtime/work_queue.h"

namespace ringmaster::controllers {

class Metrics;

struct JobControllerOptions {
  PodOptions pod;
  std::string watch_namespace;  // empty: all
  // Pods start together or not at all: minReplicas have to find a node at the same time. Reads all
  // nodes and pods of the cluster.
  bool gang_admission = false;
  std::string instance = "ringmaster-operator";
  int workers = 2;
  std::chrono::milliseconds sync_timeout{60'000};
  runtime::WorkQueueOptions queue;
  Metrics* metrics = nullptr;  // may be null; else it outlives the controller
};

class JobController {
 public:
  JobController(std::shared_ptr<kube::KubeApi> api, SidecarHub* hub, RecordStore* records,
                JobControllerOptions options);
  ~JobController();

  // Returns when the caches hold what the API server has; the error says why they don't, or that
  // `stop` was requested.
  kube::Result<void> Start(std::stop_token stop = {});
  // Ends when what is being reconciled is done.
  void Stop();

  struct State {
    std::vector<runtime::Informer::State> caches;
    runtime::WorkQueue::Stats queue;
  };
  State state() const;
  // As the caches have them.
  std::vector<runtime::ObjectPtr> Jobs() const { return jobs_.All(); }
  std::vector<runtime::ObjectPtr> Pods() const { return pods_.All(); }

 private:
  std::vector<runtime::Informer*> Caches();
  kube::Result<void> AwaitCaches(std::stop_token stop);
  void Work(std::stop_token stop);
  // False: look again after a while.
  bool Reconcile(const std::string& key);
  bool ReconcileJob(const api::HorovodJob& job, const kube::Json& object);
  kube::Result<planner::Snapshot> Observe(const api::HorovodJob& job);
  std::vector<planner::PodFacts> ReadPods(
      const api::HorovodJob& job, const std::vector<std::shared_ptr<const kube::Json>>& pods) const;
  bool ApplyFound(const planner::Snapshot& snapshot, const membership::ViewPtr& view);
  bool ApplyArbitrate(const api::HorovodJob& job, std::uint64_t lineage);
  bool StillSo(const planner::Snapshot& snapshot, const membership::ViewPtr& view);
  bool Apply(const planner::Snapshot& snapshot, const planner::Decision& decision);
  bool CreatePod(const api::HorovodJob& job, const planner::PodCreate& create);
  std::optional<planner::RoomFacts> RoomFor(const planner::Snapshot& snapshot);
  bool Admit(const api::HorovodJob& job, const planner::PodAdmit& pod);
  bool Annotate(const api::HorovodJob& job, const std::string& pod, const kube::Json& annotations);
  bool DeletePod(const api::HorovodJob& job, const planner::PodDelete& pod);
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
  std::unique_ptr<Room> room_;  // null: no gang admission
  std::vector<std::jthread> threads_;
};

}  // namespace ringmaster::controllers
