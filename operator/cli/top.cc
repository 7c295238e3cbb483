#include "operator/cli/top.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "common/fields/fields.h"
#include "operator/cli/table_layout.h"
#include "operator/cli/text_format.h"

namespace ringmaster::cli {
namespace {

// A rank holds the others up when it waits so much less than they do, in shares of its time.
constexpr double kClearlyLess = 0.2;

struct RankTimes {
  int rank = -1;
  std::string worker;
  uint64_t step = 0;
  uint64_t steps = 0;        // completed between the looks
  job::WorkerTimes between;  // seconds 0: it has not trained since

  double Share(double seconds) const {
    return between.seconds > 0 ? std::clamp(seconds / between.seconds, 0.0, 1.0) : 0;
  }
};

const WorkerStatus* SameProcess(const Inspection& in, const std::string& pod,
                                const WorkerStatus& worker) {
  const auto answer = in.answers.find(pod);
  if (answer == in.answers.end()) return nullptr;
  for (const WorkerStatus& other : answer->second.workers)
    if (other.slot == worker.slot && other.incarnation == worker.incarnation) return &other;
  return nullptr;
}

std::vector<RankTimes> TimesByRank(const Inspection& earlier, const Inspection& now) {
  std::vector<RankTimes> ranks;
  for (const auto& [pod, status] : now.answers) {
    for (const WorkerStatus& worker : status.workers) {
      if (worker.standby || worker.rank < 0) continue;
      const WorkerStatus* before = SameProcess(earlier, pod, worker);
      RankTimes times{worker.rank, pod, worker.step, 0, worker.times};
      if (status.workers.size() > 1) times.worker += fmt::format("/{}", worker.slot);
      if (before != nullptr) {
        times.steps = worker.step - std::min(worker.step, before->step);
        times.between = job::Between(before->times, worker.times);
      }
      ranks.push_back(times);
    }
  }
  std::sort(ranks.begin(), ranks.end(),
            [](const RankTimes& a, const RankTimes& b) { return a.rank < b.rank; });
  return ranks;
}

// By the rank that has come furthest: the others may have been asked a moment earlier.
std::string HeadLine(const Inspection& now, const std::vector<RankTimes>& ranks) {
  std::string text = fields::TextAt(now.job, "/metadata/name");
  uint64_t epoch = 0;
  for (const auto& [pod, status] : now.answers) epoch = std::max(epoch, status.epoch);
  if (epoch > 0) text += "   view " + ViewName(epoch);
  text += "   " + Counted(ranks.size(), "worker");
  const auto most =
      std::max_element(ranks.begin(), ranks.end(),
                       [](const RankTimes& a, const RankTimes& b) { return a.steps < b.steps; });
  if (most == ranks.end()) return text + "\n";
  text += fmt::format("   step {}", most->step);
  if (most->steps > 0 && most->between.seconds > 0) {
    const double each = most->between.seconds / static_cast<double>(most->steps);
    text += fmt::format("   {} a step", Milliseconds(each));
  }
  return text + "\n";
}

std::vector<std::string> RowOf(const RankTimes& times) {
  std::vector<std::string> row = {std::to_string(times.rank), times.worker,
                                  std::to_string(times.step)};
  if (times.between.seconds <= 0) {
    row.insert(row.end(), {"-", "-", "-", "-", "-"});
    return row;
  }
  const auto percent = [&](double seconds) {
    return fmt::format("{:.0f}%", 100 * times.Share(seconds));
  };
  const double megabytes = static_cast<double>(times.between.bytes) / 1e6;
  row.insert(row.end(), {fmt::format("{:.0f}%", 100 - 100 * times.Share(times.between.blocked)),
                         percent(times.between.blocked), percent(times.between.waiting),
                         percent(times.between.running),
                         fmt::format("{:.4g}", megabytes / times.between.seconds)});
  return row;
}

// The rank that waits clearly less than every other one does.
std::string HoldUp(const std::vector<RankTimes>& ranks) {
  const RankTimes* least = nullptr;
  std::optional<double> second;
  for (const RankTimes& times : ranks) {
    if (times.between.seconds <= 0) return "";
    const double waits = times.Share(times.between.waiting);
    if (least == nullptr || waits < least->Share(least->between.waiting)) {
      if (least != nullptr) second = least->Share(least->between.waiting);
      least = &times;
    } else if (!second || waits < *second) {
      second = waits;
    }
  }
  if (!second || *second - least->Share(least->between.waiting) < kClearlyLess) return "";
  return fmt::format(
      "\nThe others wait for rank {} ({}): it waits {:.0f}% of its time, each of them {:.0f}% or "
      "more.\n",
      least->rank, least->worker, 100 * least->Share(least->between.waiting), 100 * *second);
}

}  // namespace

std::string TopText(const Inspection& earlier, const Inspection& now) {
  const std::vector<RankTimes> ranks = TimesByRank(earlier, now);
  std::vector<std::vector<std::string>> rows = {
      {"RANK", "WORKER", "STEP", "COMPUTES", "BLOCKED", "WAITING", "RUNNING", "MB/S"}};
  for (const RankTimes& times : ranks) rows.push_back(RowOf(times));
  if (ranks.empty()) return HeadLine(now, ranks) + "no worker is in a view\n";
  return HeadLine(now, ranks) + Lay(rows) + HoldUp(ranks);
}

}  // namespace ringmaster::cli
