#include "operator/scheduler/fair_growth.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace ringmaster::scheduler {

void FairGrowth::Grow(const std::vector<WaitingJob*>& jobs, bool once) {
  const bool alone = jobs.size() == 1;  // then no shares need comparing
  if (jobs.size() > 1) shares_.Weigh(jobs);
  std::set<std::tuple<double, std::size_t>> turns;  // by share, then by place in line
  const auto take_turn = [&](std::size_t i) {
    turns.insert({alone ? 0 : shares_.Of(*jobs[i]), i});
  };
  for (std::size_t i = 0; i < jobs.size(); ++i) take_turn(i);
  while (!turns.empty()) {
    const std::size_t i = std::get<1>(turns.extract(turns.begin()).value());
    WaitingJob* job = jobs[i];
    const AdmissionRequest& request = job->request;
    const int before = job->answer.fit;
    GrowTo(once ? std::max(before, request.Least()) : request.SizeAbove(before), job);
    const bool grew = job->answer.fit > before;
    if (grew && !once && job->answer.fit < request.Most()) take_turn(i);
  }
}

void FairGrowth::GrowTo(int target, WaitingJob* waiting) {
  const int before = waiting->answer.fit;
  reservation_.GrowBeside(waiting, target);
  if (waiting->answer.fit < target && topology_.Widen(waiting)) {
    reservation_.GrowBeside(waiting, target);
  }
  shares_.Granted(*waiting, before);
}

}  // namespace ringmaster::scheduler
