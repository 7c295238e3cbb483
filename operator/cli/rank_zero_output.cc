#include "operator/cli/rank_zero_output.h"

#include <utility>

namespace ringmaster::cli {
namespace {

// Per pod. Before the first view all lines are held, enough for those of a script until init().
constexpr std::size_t kMostHeld = 1000;

bool IsSamePlace(const inspection::RankHolder& a, const inspection::RankHolder& b) {
  return a.pod == b.pod && a.slot == b.slot;
}

}  // namespace

RankZeroOutput::Lines RankZeroOutput::OnLine(const JobRun& job, const std::string& pod,
                                             const std::string& line) {
  if (auto text = job.OutputOfRankZero(pod, line)) return {*text};
  if (before_ && !job.progress().views().HasRank(*before_)) {
    if (auto text = job.OutputOf(*before_, pod, line)) return {*text};
  }
  PodLines& lines = pods_[pod];
  lines.held.push_back({lines.statuses, line});
  if (lines.held.size() > kMostHeld) lines.held.pop_front();
  return {};
}

RankZeroOutput::Lines RankZeroOutput::OnStatus(const JobRun& job, const std::string& pod) {
  Lines shown;
  const auto now = job.RankZero();
  if (now && !(rank_zero_ && IsSamePlace(*rank_zero_, *now))) {
    before_ = std::exchange(rank_zero_, now);
    // The first worker may have lost rank 0 before a sidecar was first asked.
    if (!before_ && job.progress().views().HadRank(job.FirstWorker())) before_ = job.FirstWorker();
    shown = TakeHeld(job, now->pod);
  }
  PodLines& lines = pods_[pod];
  ++lines.statuses;
  // The sidecar was asked for this status after it had sent the previous one.
  while (now && !lines.held.empty() && lines.held.front().statuses + 2 <= lines.statuses)
    lines.held.pop_front();
  return shown;
}

void RankZeroOutput::OnNewPod(const std::string& pod) {
  pods_.erase(pod);
  if (before_ && before_->pod == pod) before_.reset();
}

RankZeroOutput::Lines RankZeroOutput::TakeHeld(const JobRun& job, const std::string& pod) {
  Lines taken;
  std::erase_if(pods_[pod].held, [&](const HeldLine& line) {
    const auto text = job.OutputOfRankZero(pod, line.text);
    if (text) taken.push_back(*text);
    return text.has_value();
  });
  return taken;
}

}  // namespace ringmaster::cli
