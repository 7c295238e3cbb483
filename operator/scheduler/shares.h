// How much of the cluster each job has, weighed by how important it is: who has the least of that
// grows next.
//
// It is dominant resource fairness (Ghodsi et al., NSDI 2011), weighted: a job's share is that of
// the resource of which it has the largest part of all that the nodes have. The numbers of
// priorities are an order and no measure, so the weight is the place in that order: the lowest
// priority of the jobs that grow weighs 1, the next one 2, and so on.
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

  // Another pass begins: what jobs have is counted anew, when it is asked for.
  void Forget();
  // The job was granted its pods from `before` on.
  void Granted(const WaitingJob& job, int before);
  // These jobs are compared from now on.
  void Weigh(const std::vector<WaitingJob*>& jobs);
  // Of one of them. 0: it has nothing. 1: all of a resource, at weight 1.
  double Of(const WaitingJob& job) const;

 private:
  void Count();

  const Capacity& capacity_;
  bool counted_ = false;                // since the pass began
  Amounts total_;                       // of all nodes
  std::map<std::string, Amounts> has_;  // by job
  std::map<int, int> weights_;          // by priority
};

}  // namespace ringmaster::scheduler
