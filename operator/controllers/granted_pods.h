// The pods that a job is about to make, as far as the line of waiting jobs reads them. The pods of
// a job are alike but for their names, so one is built and the others are copies; as long as the
// job's spec stays as it is, they are the same objects at each look.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/api/horovod_job.h"
#include "operator/controllers/pod_options.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/decision.h"

namespace ringmaster::controllers {

// Another owner's gate remains when ours is removed. Until that one is removed, too, the pod takes
// nothing.
std::shared_ptr<const kube::Json> AsAsked(std::shared_ptr<const kube::Json> pod);

class GrantedPods {
 public:
  explicit GrantedPods(PodOptions options) : options_(std::move(options)) {}

  std::shared_ptr<const kube::Json> Of(const api::HorovodJob& job,
                                       const planner::PodCreate& create);
  void Forget(const std::string& job_key);

 private:
  struct Pod {
    std::vector<std::string> keep_off;  // as PodCreate has it
    std::shared_ptr<const kube::Json> object;
  };
  struct Job {
    std::string uid;
    std::int64_t generation = 0;
    Pod last;                 // the others that keep off the same nodes are copies of it
    std::map<int, Pod> pods;  // by index
  };
  kube::Json Build(const api::HorovodJob& job, const planner::PodCreate& create) const;

  const PodOptions options_;
  sync::Mutex mu_;
  std::map<std::string, Job> jobs_ GUARDED_BY(mu_);  // by namespace/name
};

}  // namespace ringmaster::controllers
