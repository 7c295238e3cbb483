// Reads the pods of jobs, and keeps what was read of each as long as the cache has the same object:
// at most looks only few of a job's pods have changed.
//
// Thread rule: every method is safe from any thread, for one job from one thread at a time.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/api/horovod_job.h"
#include "operator/planner/snapshot.h"
#include "operator/runtime/object_cache.h"

namespace ringmaster::controllers {

// Facts about the worker pods in `pods` that the job owns, by index.
std::vector<planner::PodFacts> ReadPodsOf(const api::HorovodJob& job,
                                          const std::vector<runtime::ObjectPtr>& pods);

class PodReader {
 public:
  // The same for all pods of the job that the cache has.
  std::vector<planner::PodFacts> Read(const api::HorovodJob& job,
                                      const std::vector<runtime::ObjectPtr>& pods);
  void Forget(const std::string& job_key);

 private:
  // The object lives as long as what was read of it, so no other one has its address.
  struct Known {
    runtime::ObjectPtr object;
    planner::PodFacts facts;
  };
  using Pods = std::unordered_map<const kube::Json*, Known>;
  Pods Take(const std::string& job_key);

  sync::Mutex mu_;
  std::map<std::string, Pods> known_ GUARDED_BY(mu_);  // by the job's key
};

}  // namespace ringmaster::controllers
