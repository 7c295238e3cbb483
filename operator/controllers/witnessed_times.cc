#include "operator/controllers/witnessed_times.h"

#include <algorithm>
#include <utility>

namespace ringmaster::controllers {

using planner::Time;

void WitnessedTimes::Correct(const std::string& job_key, Time now,
                             std::vector<planner::PodFacts>* pods) {
  Pods before = Take(job_key), known;
  for (planner::PodFacts& pod : *pods) {
    Moments& moments = known[pod.uid] = before[pod.uid];
    CorrectOne(moments.accepted, pod.created, now, &pod.accepted_at);
    CorrectOne(moments.running, pod.created, now, &pod.running_since);
    CorrectOne(moments.ended, pod.created, now, &pod.ended_at);
  }
  const sync::MutexLock lock(&mu_);
  if (!known.empty()) known_[job_key] = std::move(known);
}

void WitnessedTimes::CorrectOne(Moment& moment, Time created, Time now, std::optional<Time>* said) {
  if (!*said) {
    moment = {.awaited = true};  // perhaps once more: a container was started again
    return;
  }
  if (moment.awaited && !moment.seen) moment.seen = now;
  *said = moment.seen ? *moment.seen : std::max(std::min(**said, now), std::min(created, now));
}

WitnessedTimes::Pods WitnessedTimes::Take(const std::string& job_key) {
  const sync::MutexLock lock(&mu_);
  auto known = known_.extract(job_key);
  return known.empty() ? Pods() : std::move(known.mapped());
}

}  // namespace ringmaster::controllers
