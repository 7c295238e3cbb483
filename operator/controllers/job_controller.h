// Reconciles HorovodJobs: observe once, plan, apply, one status write, events.
//
// Thread rule: Start and Stop from one thread. `workers` threads reconcile, one job at a time each.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "operator/controllers/creation_problems.h"
#include "operator/controllers/job_object_keeper.h"
#include "operator/controllers/pod_builder.h"
#include "operator/controllers/preparation_problems.h"
#include "operator/controllers/quorum_record_store.h"
#include "operator/controllers/room.h"
#include "operator/controllers/sidecar_hub.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/decision.h"
#include "operator/planner/disruption.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/informer.h"
#include "operator/runtime/work_queue.h"

namespace ringmaster::controllers {

class Metrics;

struct JobControllerOptions {
  PodOptions pod;
  // Service, PodDisruptionBudget, NetworkPolicy and Secret of each job; none: the local cluster.
  std::optional<JobObjectOptions> objects;
  std::string watch_namespace;  // empty: all
  // Pods start together or not at all: minReplicas have to find a node at the same time. Reads all
  // nodes and pods of the cluster.
  bool gang_admission = false;
  std::string instance = "ringmaster-operator";
  // Pods carry the finalizer that keeps them until their death is proven or doesn't matter.
  bool proof_finalizer = true;
  // Node objects are removed by the cloud alone, after their instances: a node that is gone is
  // proof then.
  bool trust_node_deletion = false;
  std::vector<std::string> disruption_taints = planner::DefaultDisruptionTaints();
  // A pod whose containers haven't begun for so long after it came to a node: why is looked for.
  std::chrono::milliseconds preparation_patience{20'000};
  int workers = 2;
  std::chrono::milliseconds sync_timeout{60'000};
  runtime::WorkQueueOptions queue;
  Metrics* metrics = nullptr;  // may be null; else it outlives the controller
};

class JobController {
 public:
  JobController(std::shared_ptr<kube::KubeApi> api, SidecarHub* hub, QuorumRecordStore* records,
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
  std::vector<const runtime::Informer*> Caches() const;
  kube::Result<void> AwaitCaches(std::stop_token stop);
  void StartNodes();
  void Work(std::stop_token stop);
  // What is kept of jobs that had this name before the one with this uid (empty: none has it).
  void ForgetFormer(const std::string& key, const std::string& uid);
  // False: look again after a while.
  bool Reconcile(const std::string& key);
  bool ReconcileJob(const api::HorovodJob& job, const kube::Json& object);
  kube::Result<planner::Snapshot> Observe(const api::HorovodJob& job);
  std::vector<planner::PodFacts> ReadPods(
      const api::HorovodJob& job, const std::vector<std::shared_ptr<const kube::Json>>& pods) const;
  bool ApplyViewDecided(const planner::Snapshot& snapshot, const membership::ViewPtr& view);
  bool ApplyRecover(const planner::Snapshot& snapshot, std::uint64_t lineage);
  bool IsMarked(const planner::Snapshot& snapshot, const std::string& uid) const;
  bool RecordWritten(const api::HorovodJob& job, const kube::Result<void>& written);
  bool StillSo(const planner::Snapshot& snapshot, const membership::ViewPtr& view);
  void ObserveNodes(planner::Snapshot* snapshot);
  runtime::ObjectPtr LiveNode(const std::string& name);
  bool InstanceIsGone(const planner::PodFacts& pod);
  void OnNode(const kube::Json& node, bool deleted);
  void SetEnding(const std::string& node, bool ends);
  std::set<std::string> NodesToObserve(const std::vector<planner::PodFacts>& pods);
  bool Apply(const planner::Snapshot& snapshot, const planner::Decision& decision);
  // False: no more of them now.
  bool CreatePods(const api::HorovodJob& job, const std::vector<planner::PodCreate>& creates);
  bool KeepObjects(const api::HorovodJob& job);
  // True: it is too early to ask for this again, and the job comes back when it is time.
  bool Pauses(const api::HorovodJob& job, Needed what);
  void Missed(const api::HorovodJob& job, Needed what, const kube::Error& error,
              const planner::Event& event);
  void ShowUnreadable(const api::HorovodJob& job, const kube::Json& object,
                      const kube::Error& error);
  bool CreatePod(const api::HorovodJob& job, const planner::PodCreate& create);
  // False: not all of them can be found yet.
  bool RestoreLabels(const api::HorovodJob& job);
  bool Relabel(const api::HorovodJob& job, const kube::Json& pod, int index);
  std::optional<planner::RoomFacts> RoomFor(const planner::Snapshot& snapshot);
  bool Admit(const api::HorovodJob& job, const planner::PodAdmit& pod);
  bool Annotate(const api::HorovodJob& job, const std::string& pod, const std::string& uid,
                const kube::Json& annotations);
  bool DeletePod(const api::HorovodJob& job, const planner::PodDelete& pod);
  bool ReleasePod(const api::HorovodJob& job, const planner::PodRelease& pod);
  // Pods that no job (any more) waits for: of `job_uid`, or of none that exists.
  bool ReleaseOrphans(const std::string& key);
  bool CollectLatePods(const kube::Json& job);
  bool ReleaseAll(const std::string& key, const std::string& job_uid, bool only_dead);
  bool WriteStatus(const api::HorovodJob& job, kube::Json object, const api::Status& status);
  bool RefuseJob(const kube::Json& object, const std::string& why);
  void Say(const api::HorovodJob& job, const planner::Event& event);

  const std::shared_ptr<kube::KubeApi> api_;
  SidecarHub* const hub_;
  const JobControllerOptions options_;
  QuorumRecordStore* const records_;
  CreationProblems problems_;
  PreparationProblems preparation_;
  runtime::EventRecorder events_;
  runtime::WorkQueue queue_;
  runtime::Informer jobs_;
  runtime::Informer pods_;
  std::unique_ptr<Room> room_;                // null: no gang admission
  std::unique_ptr<JobObjectKeeper> objects_;  // null on the local cluster
  runtime::Informer nodes_;
  bool nodes_readable_ = false;                     // constant after Start
  std::map<std::string, planner::NodeFacts> seen_;  // by name; thread of nodes_ only
  std::mutex uids_mu_;
  std::map<std::string, std::string> uids_;  // of the jobs looked at, by key; guarded by uids_mu_
  std::mutex ending_mu_;
  std::set<std::string> ending_;  // nodes of which an end is announced; guarded by ending_mu_
  std::vector<std::jthread> threads_;
};

}  // namespace ringmaster::controllers
