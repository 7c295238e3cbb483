#include "operator/scheduler/shares.h"

#include <algorithm>
#include <utility>

namespace ringmaster::scheduler {

void Shares::Forget() {
  counted_ = false;
  has_.clear();
}

void Shares::Count() {
  if (std::exchange(counted_, true)) return;
  total_ = capacity_.nodes().Total();
  ForEachOfJobs(capacity_, [this](const std::string& job, const std::string& /*node*/,
                                  const Amounts& requests) { Add(has_[job], requests); });
}

// Before the first count there is nothing to update: the count will include these pods.
void Shares::Granted(const WaitingJob& job, int before) {
  if (!counted_) return;
  for (int i = before; i < job.answer.fit; ++i) {
    Add(has_[job.request.job], job.shapes[static_cast<std::size_t>(i)]->requests);
  }
}

void Shares::Weigh(const std::vector<WaitingJob*>& jobs) {
  Count();
  weights_.clear();
  for (const WaitingJob* job : jobs) weights_[job->request.priority] = 0;
  int weight = 0;
  for (auto& [priority, of_priority] : weights_) of_priority = ++weight;
}

double Shares::Of(const WaitingJob& job) const {
  const auto has = has_.find(job.request.job);
  if (has == has_.end()) return 0;
  double share = 0;
  for (const auto& [resource, amount] : has->second) {
    const auto total = total_.find(resource);
    if (total != total_.end() && total->second > 0) {
      share = std::max(share, amount / total->second);
    }
  }
  return share / weights_.at(job.request.priority);
}

}  // namespace ringmaster::scheduler
