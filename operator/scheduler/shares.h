// How much of the cluster each job has, weighed by its priority: the job with the smallest share
// grows next.
//
// This is weighted dominant resource fairness (Ghodsi et al., NSDI 2011): a job's share is its part
// of the resource of which it has the largest part in the cluster. Priorities are an order and no
// measure, so the weight of a priority is its place in that order: the lowest priority among the
// jobs that grow weighs 1, the next one 2, and so on.
//
// Pure. The capacity outlives it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/scheduler/capacity.h"
#include "operator/scheduler/waiting_job.h"

namespace ringmaster::scheduler {

class Shares {
 public:
  explicit Shares(const Capacity& capacity) : capacity_(capacity) {}

  // A new pass begins: what jobs have is counted again when it is next needed.
  void Forget();
  // The job was granted its pods from `before` on.
  void Granted(const WaitingJob& job, int before);
  // Sets the jobs whose shares are compared, and so the weights.
  void Weigh(const std::vector<WaitingJob*>& jobs);
  // The share of one of these jobs. 0: it has nothing. 1: it has all of a resource, at weight 1.
  double Of(const WaitingJob& job) const;

 private:
  void Count();

  const Capacity& capacity_;
  bool counted_ = false;                // has_ and total_ were counted in this pass
  Amounts total_;                       // of all nodes
  std::map<std::string, Amounts> has_;  // by job
  std::map<int, int> weights_;          // by priority
};

}  // namespace ringmaster::scheduler
