// Builds the snapshot of one job on which the planner decides, from the caches, the sidecars'
// reports and the quorum record.
//
// Thread rule: every method is safe from any thread, for one job from one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator/api/horovod_job.h"
#include "operator/controllers/node_watcher.h"
#include "operator/controllers/preparation_problems.h"
#include "operator/controllers/quorum_record_store.h"
#include "operator/controllers/sidecar_registry.h"
#include "operator/controllers/witnessed_times.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/snapshot.h"
#include "operator/runtime/clock.h"
#include "operator/runtime/informer.h"
#include "operator/runtime/work_queue.h"

namespace ringmaster::controllers {

struct JobObserverOptions {
  std::vector<std::string> disruption_taints;
  // How long a pod may be on a node without running containers before the reason is looked for.
  std::chrono::milliseconds preparation_patience{20'000};
  runtime::Clock clock;
};

class JobObserver {
 public:
  // Where the facts come from; all outlive the observer.
  struct Sources {
    SidecarRegistry* registry = nullptr;
    QuorumRecordStore* records = nullptr;
    const runtime::Informer* pods = nullptr;
    NodeWatcher* nodes = nullptr;
  };

  // Through `queue` a job comes back when some fact about it has to be read again.
  JobObserver(std::shared_ptr<kube::KubeApi> api, const Sources& sources, runtime::WorkQueue* queue,
              JobObserverOptions options);

  // The error: the record can't be read, and nothing can be decided without it.
  kube::Result<planner::Snapshot> Observe(const api::HorovodJob& job);
  // The same snapshot with the pods that the API server lists now, because the cache may lack one.
  kube::Result<planner::Snapshot> WithListedPods(const planner::Snapshot& snapshot);
  void Forget(const std::string& job_key) {
    times_.Forget(job_key);
    preparation_.Forget(job_key);
  }

 private:
  kube::Result<void> ReadRecord(planner::Snapshot* snapshot);

  const std::shared_ptr<kube::KubeApi> api_;
  const Sources from_;
  runtime::WorkQueue* const queue_;
  const JobObserverOptions options_;
  WitnessedTimes times_;
  PreparationProblems preparation_;
};

}  // namespace ringmaster::controllers
