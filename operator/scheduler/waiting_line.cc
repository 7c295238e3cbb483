#include "operator/scheduler/waiting_line.h"

#include <algorithm>
#include <tuple>

namespace ringmaster::scheduler {

bool WaitingLine::Remove(const std::string& job) {
  jobs_.erase(job);
  return line_.erase(job) > 0;
}

void WaitingLine::Keep(const std::string& job) {
  if (jobs_.at(job).Satisfied()) {
    line_.erase(job);
  } else {
    line_.insert(job);
  }
}

bool WaitingLine::HasTakerFrom(int priority) const {
  return std::any_of(line_.begin(), line_.end(), [&](const std::string& job) {
    const AdmissionRequest& request = jobs_.at(job).request;
    return request.preempts && request.priority > priority;
  });
}

std::vector<WaitingJob*> WaitingLine::InOrder(
    const std::function<bool(const std::string& job)>& takes) {
  std::vector<WaitingJob*> order;
  for (const std::string& job : line_) order.push_back(&jobs_.at(job));
  // Jobs that came at the same time are ordered by name.
  std::stable_sort(order.begin(), order.end(), [&](const WaitingJob* a, const WaitingJob* b) {
    const auto rank = [&](const AdmissionRequest& r) {
      const bool first = r.state == GangState::kShort || takes(r.job);
      return std::tuple(!first, -r.priority, r.state == GangState::kRuns, r.since);
    };
    return rank(a->request) < rank(b->request);
  });
  return order;
}

}  // namespace ringmaster::scheduler
