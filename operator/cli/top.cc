#include "operator/cli/top.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/fields/fields.h"
#include "operator/cli/table_layout.h"
#include "operator/inspection/rank_times.h"
#include "operator/inspection/text_format.h"

namespace ringmaster::cli {
namespace {

std::string HeadLine(const inspection::Inspection& now,
                     const std::vector<inspection::RankTimes>& ranks) {
  std::string text = fields::TextAt(now.job, "/metadata/name");
  uint64_t epoch = 0, step = 0;
  for (const auto& [pod, status] : now.answers) epoch = std::max(epoch, status.epoch);
  for (const inspection::RankTimes& times : ranks) step = std::max(step, times.step);
  if (epoch > 0) text += "   view " + inspection::ViewName(epoch);
  if (now.silent.empty())
    text += "   " + inspection::Counted(ranks.size(), "worker");
  else if (!ranks.empty())  // how many there are besides nobody has told
    text += "   " + inspection::Counted(ranks.size(), "worker") +
            (ranks.size() == 1 ? " answers" : " answer");
  if (!ranks.empty()) text += fmt::format("   step {}", step);
  if (const auto seconds = inspection::StepSeconds(ranks))
    text += fmt::format("   {} a step", inspection::Milliseconds(*seconds));
  return text + "\n";
}

std::vector<std::string> RowOf(const inspection::RankTimes& times) {
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
  row.insert(
      row.end(),
      {fmt::format("{:.0f}%", 100 - 100 * times.Share(times.between.blocked)),
       percent(times.between.blocked), fmt::format("{:.0f}%", 100 * times.Waits()),
       percent(times.between.running), fmt::format("{:.4g}", megabytes / times.between.seconds)});
  return row;
}

std::string HoldUp(const std::vector<inspection::RankTimes>& ranks) {
  const auto straggler = inspection::FindStraggler(ranks);
  if (!straggler) return "";
  return fmt::format(
      "\nThe others wait for rank {} ({}): it waits {:.0f}% of its time, each of them {:.0f}% or "
      "more.\n",
      straggler->rank.rank, straggler->rank.worker, 100 * straggler->rank.Waits(),
      100 * straggler->least_of_others);
}

// Empty if a step was completed. Without one the column STEP leaves open what is the matter.
std::string NoStepYet(const std::vector<inspection::RankTimes>& ranks, const std::string& job) {
  if (std::any_of(ranks.begin(), ranks.end(), [](const auto& times) { return times.step > 0; }))
    return "";
  return fmt::format(
      "\nNo step has been completed yet. A script that calls neither step() of a "
      "DistributedOptimizer nor\nstate.commit() nor end_step() completes none.\nMore: why {}\n",
      job);
}

std::string Silence(const inspection::Inspection& now) {
  const std::string text = inspection::SilentText(now);
  return text.empty() ? "" : "\n" + text + "\n";
}

// Whether workers are in a view only their sidecars know.
std::string WithoutRanks(const inspection::Inspection& now, const std::string& job) {
  return (now.silent.empty() ? "no worker is in a view\n" : "no sidecar has told of a worker\n") +
         Silence(now) + fmt::format("More: why {}\n", job);
}

}  // namespace

std::string TopText(const inspection::Inspection& earlier, const inspection::Inspection& now) {
  const std::vector<inspection::RankTimes> ranks = inspection::TimesByRank(earlier, now);
  std::vector<std::vector<std::string>> rows = {
      {"RANK", "WORKER", "STEP", "COMPUTES", "BLOCKED", "WAITING", "RUNNING", "MB/S"}};
  for (const inspection::RankTimes& times : ranks) rows.push_back(RowOf(times));
  const std::string job = fields::TextAt(now.job, "/metadata/name");
  if (ranks.empty()) return HeadLine(now, ranks) + WithoutRanks(now, job);
  return HeadLine(now, ranks) + Lay(rows) + HoldUp(ranks) + NoStepYet(ranks, job) + Silence(now);
}

}  // namespace ringmaster::cli
