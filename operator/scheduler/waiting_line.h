// The jobs that have requested places for their pods, and the line of those that want more pods
// than they have been granted. The order of the line is described in admission.h.
//
// Pure.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/scheduler/waiting_job.h"

namespace ringmaster::scheduler {

class WaitingLine {
 public:
  // Adds the job, with an empty request, if it is not here. The reference stays valid until the job
  // is removed.
  WaitingJob& Of(const std::string& job) { return jobs_[job]; }
  // The job must be here.
  WaitingJob& At(const std::string& job) { return jobs_.at(job); }
  const WaitingJob& At(const std::string& job) const { return jobs_.at(job); }
  // Returns true if the job stood in line.
  bool Remove(const std::string& job);
  std::map<std::string, WaitingJob>& all() { return jobs_; }  // by job, also those out of the line

  // The job's answer may have changed: it stands in line if it is not satisfied.
  void Keep(const std::string& job);
  bool IsEmpty() const { return line_.empty(); }
  // A job other than this one stands in line.
  bool HasOthersThan(const std::string& job) const { return line_.size() > line_.count(job); }
  // A job in line may take pods from jobs of this priority.
  bool HasTakerFrom(int priority) const;
  // The jobs in line, in their order. `takes` says for which jobs others give up pods: these come
  // before the jobs that would get those pods.
  std::vector<WaitingJob*> InOrder(const std::function<bool(const std::string& job)>& takes);

 private:
  std::map<std::string, WaitingJob> jobs_;
  std::set<std::string> line_;  // the jobs of jobs_ that are not satisfied
};

}  // namespace ringmaster::scheduler
