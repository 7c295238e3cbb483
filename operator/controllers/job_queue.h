// A job's place in a queue of Kueue: keeps its Workload, and says what that means for the job
// (operator/kueue).
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
#include "operator/controllers/object_lookup.h"
#include "operator/controllers/pod_options.h"
#include "operator/kube/kube_api.h"
#include "operator/kueue/next_write.h"
#include "operator/kueue/standing.h"
#include "operator/planner/snapshot.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {

class JobQueue {
 public:
  struct Options {
    bool enabled = false;                 // else a job with a queue waits, and is told why
    std::vector<std::string> namespaces;  // empty: all
    PodOptions pod;
  };
  // `changed`: the Workload of this job (namespace/name) is not what it was.
  JobQueue(std::shared_ptr<kube::KubeApi> api, Options options,
           std::function<void(const std::string& job_key)> changed);

  void Start();
  void Stop();
  // Workloads are known, or why they can't be; or nobody asks for them.
  bool HasAnswer() const;

  struct Answer {
    std::optional<kueue::Standing> standing;  // absent: the job is in no queue
    // What is not as it should be is tried again after so long.
    std::optional<std::chrono::milliseconds> look_again;
  };
  // Writes what the Workload needs, one thing at a time, then reads it.
  Answer Look(const planner::Snapshot& snapshot);

 private:
  kube::Result<kueue::Json> WantedWorkload(const api::HorovodJob& job);
  kube::Result<std::optional<kueue::Priority>> PriorityOf(const api::HorovodJob& job);
  // `live`: the Workload that the write was decided on; null: there was none.
  kube::Result<void> Write(const api::HorovodJob& job, const kube::Json* live,
                           const kueue::Write& write, api::Time now);
  Answer Ask(const planner::Snapshot& snapshot);
  Answer JudgeWithoutQueue(const api::HorovodJob& job);
  Answer Judge(const api::HorovodJob& job, const kube::Json* workload);
  kube::Result<std::vector<kube::Json>> FlavorsOf(const kueue::WorkloadFacts& facts);

  const std::shared_ptr<kube::KubeApi> api_;
  const Options options_;
  runtime::Informer workloads_;
  ObjectLookup lookup_;
};

}  // namespace ringmaster::controllers
