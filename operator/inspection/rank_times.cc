#include "operator/inspection/rank_times.h"

#include <fmt/format.h>

namespace ringmaster::inspection {
namespace {

// A share of a rank's time.
constexpr double kClearlyLess = 0.2;

const WorkerStatus* SameProcess(const Inspection& in, const std::string& pod,
                                const WorkerStatus& worker) {
  const auto answer = in.answers.find(pod);
  if (answer == in.answers.end()) return nullptr;
  for (const WorkerStatus& other : answer->second.workers)
    if (other.slot == worker.slot && other.incarnation == worker.incarnation) return &other;
  return nullptr;
}

}  // namespace

std::vector<RankTimes> TimesByRank(const Inspection& earlier, const Inspection& now) {
  std::vector<RankTimes> ranks;
  for (const auto& [pod, status] : now.answers) {
    for (const WorkerStatus& worker : status.workers) {
      if (worker.standby || worker.rank < 0) continue;
      const WorkerStatus* before = SameProcess(earlier, pod, worker);
      RankTimes times{worker.rank, pod, pod, worker.step, 0, worker.times};
      if (status.workers.size() > 1) times.worker += fmt::format("/{}", worker.slot);
      if (before != nullptr) {
        // a worker that has just joined got its step from the others
        if (before->rank >= 0) times.steps = worker.step - std::min(worker.step, before->step);
        times.between = job::Between(before->times, worker.times);
      }
      ranks.push_back(times);
    }
  }
  std::sort(ranks.begin(), ranks.end(),
            [](const RankTimes& a, const RankTimes& b) { return a.rank < b.rank; });
  return ranks;
}

std::optional<double> StepSeconds(const std::vector<RankTimes>& ranks) {
  const auto most =
      std::max_element(ranks.begin(), ranks.end(),
                       [](const RankTimes& a, const RankTimes& b) { return a.steps < b.steps; });
  if (most == ranks.end() || most->steps == 0 || most->between.seconds <= 0) return std::nullopt;
  return most->between.seconds / static_cast<double>(most->steps);
}

std::optional<Straggler> FindStraggler(const std::vector<RankTimes>& ranks) {
  if (ranks.size() < 2) return std::nullopt;
  std::vector<const RankTimes*> order;
  for (const RankTimes& times : ranks) {
    if (times.between.seconds <= 0) return std::nullopt;
    order.push_back(&times);
  }
  std::partial_sort(order.begin(), order.begin() + 2, order.end(),
                    [](const RankTimes* a, const RankTimes* b) { return a->Waits() < b->Waits(); });
  if (order[1]->Waits() - order[0]->Waits() < kClearlyLess) return std::nullopt;
  return Straggler{*order[0], order[1]->Waits()};
}

}  // namespace ringmaster::inspection
