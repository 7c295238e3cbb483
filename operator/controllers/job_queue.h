// A job's place in a Kueue queue: maintains the job's Workload, and finds out what it means for the
// job (operator/kueue).
//
// Thread rule: Start and Stop from one thread, Look from any, for one job from one thread at a
// time.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/controllers/expected_priorities.h"
#include "operator/controllers/object_lookup.h"
#include "operator/controllers/pod_options.h"
#include "operator/kube/kube_api.h"
#include "operator/kueue/next_write.h"
#include "operator/kueue/queue_state.h"
#include "operator/planner/snapshot.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {

class JobQueue {
 public:
  struct Options {
    bool enabled = false;  // false: a job with a queue waits, and its condition says why
    std::vector<std::string> namespaces;  // empty: all
    PodOptions pod;
  };
  // `changed` is called when the Workload of this job (namespace/name) has changed.
  JobQueue(std::shared_ptr<kube::KubeApi> api, Options options,
           std::function<void(const std::string& job_key)> changed);

  void Start();
  void Stop();
  // Workloads could be read, or the reason why not is known; also true if Kueue is disabled.
  bool HasAnswer() const;

  struct Answer {
    std::optional<kueue::QueueState> state;  // absent: the job is in no queue
    // When to look again if something could not be read or written.
    std::optional<std::chrono::milliseconds> look_again;
  };
  // Writes one change to the Workload if one is needed, then reads it.
  Answer Look(const planner::Snapshot& snapshot);

 private:
  // Returns whether the job's Workload exists; then it has its labels (again).
  kube::Result<bool> RestoreLabels(const api::HorovodJob& job);
  kube::Result<kueue::Json> WantedWorkload(const api::HorovodJob& job);
  kube::Result<std::optional<kueue::Priority>> PriorityOf(const api::HorovodJob& job);
  // `live` is the Workload for which the write was decided; null if there was none.
  kube::Result<void> Write(const api::HorovodJob& job, const kube::Json* live,
                           const kueue::Write& write, api::Time now);
  Answer Ask(const planner::Snapshot& snapshot);
  Answer EvaluateWithoutQueue(const api::HorovodJob& job);
  Answer Evaluate(const api::HorovodJob& job, const kube::Json* workload);
  kube::Result<std::vector<kube::Json>> FlavorsOf(const kueue::WorkloadFacts& facts);

  const std::shared_ptr<kube::KubeApi> api_;
  const Options options_;
  runtime::Informer workloads_;
  ObjectLookup lookup_;
  ExpectedPriorities priorities_;
};

}  // namespace ringmaster::controllers
