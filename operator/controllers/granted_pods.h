// The pods that a job is about to make, as far as the line of waiting jobs reads them: by the
// template at first, and once the job has to wait as the API server would store them, which it says
// in a dry run. The pods of a job are alike but for their names, so one is built and the others are
// copies; as long as nothing has changed, they are the same objects at each look.
//
// Thread rule: every method is safe from any thread, for one job from one thread at a time.
#pragma once

#include <chrono>
#include <functional>
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
#include "operator/runtime/clock.h"

namespace ringmaster::controllers {

// A gate of another owner keeps the pod off all nodes. Until it is removed the pod takes nothing.
std::shared_ptr<const kube::Json> AsAsked(std::shared_ptr<const kube::Json> pod);

class GrantedPods {
 public:
  using Pod = std::shared_ptr<const kube::Json>;
  // The pod of this index as the API server would store it; null: it says nothing, or refuses.
  using DryRun = std::function<Pod(const api::HorovodJob& job, int index)>;
  // What the API server has said counts for so long, and silence for a shorter time.
  static constexpr std::chrono::minutes kCounts{10};
  static constexpr std::chrono::seconds kSilence{5};

  GrantedPods(PodOptions options, DryRun dry_run, runtime::Clock clock = {})
      : options_(std::move(options)), dry_run_(std::move(dry_run)), clock_(std::move(clock)) {}

  Pod Of(const api::HorovodJob& job, const planner::PodCreate& create);
  // Asks the API server, unless that was done lately. True: it has answered.
  bool TryOut(const api::HorovodJob& job, int index);
  // What it has said last; null: nothing about pods as this job's spec makes them.
  Pod Tried(const api::HorovodJob& job) const;
  void Forget(const std::string& job_key);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Known {
    std::vector<std::string> keep_off;  // as PodCreate has it
    Pod object;
  };
  struct Job {
    std::string uid;
    std::string made_from;
    Pod tried;
    Time ask_again;
    Known last;                 // the others that keep off the same nodes are copies of it
    std::map<int, Known> pods;  // by index
  };
  Job& JobOf(const api::HorovodJob& job) REQUIRES(mu_);
  kube::Json Build(const api::HorovodJob& job, const planner::PodCreate& create,
                   const Pod& tried) const;

  const PodOptions options_;
  const DryRun dry_run_;
  const runtime::Clock clock_;
  mutable sync::Mutex mu_;
  std::map<std::string, Job> jobs_ GUARDED_BY(mu_);  // by namespace/name
};

}  // namespace ringmaster::controllers
