#include "operator/cli/job_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/fields.h"
#include "operator/inspection/text_format.h"

namespace ringmaster::cli {
namespace {

std::int64_t StepsLost(const JobRun& job) {
  return std::max(job.progress().views().steps_lost(),
                  fields::IntegerAt(job.object(), "/status/stepsLost"));
}

std::int64_t RestartsFromCheckpoint(const JobRun& job) {
  return fields::IntegerAt(job.object(), "/status/restartsFromCheckpoint");
}

// The last values that the script has reported, without its numbers of steps and samples; empty if
// there are none.
std::string LastValues(const JobProgress& progress) {
  std::string values;
  for (const auto& [name, value] : progress.values())
    if (name != "total_steps" && name != "samples")
      values += fmt::format("  {} {}", name, inspection::Number(value));
  return values;
}

// Empty if no step was completed, as by a script that has none.
std::string Steps(const JobRun& job) {
  const auto steps = static_cast<size_t>(job.progress().step());
  if (steps == 0 && StepsLost(job) == 0) return "";
  return fmt::format(", {}, {} lost", inspection::Counted(steps, "step"), StepsLost(job));
}

std::string Change(std::uint64_t epoch, const ViewRecord& view) {
  const job::Rebuild& rebuild = view.rebuild;
  return fmt::format("  {:<8} {:<13} {:>9} {:>8.0f}   {}", inspection::ViewName(epoch),
                     rebuild.reason, fmt::format("{} -> {}", view.old_size, rebuild.world_size),
                     job::TotalSeconds(rebuild.seconds) * 1e3,
                     inspection::PhasesText(rebuild.seconds));
}

// A table of the views after the first, with a head; empty if there were none. Of very many the
// newest: each was shown when it came, and the outcome above has to stay in sight.
std::vector<std::string> Changes(const JobProgress& progress) {
  constexpr std::size_t kMostLines = 20;
  const ViewHistory& views = progress.views();
  std::vector<std::string> changes;
  for (const auto& [epoch, view] : views.all())
    if (view.old_size != 0) changes.push_back(Change(epoch, view));
  if (changes.empty()) return {};
  std::vector<std::string> lines{
      fmt::format("  {:<8} {:<13} {:>9} {:>8}   by phase (ms)", "view", "reason", "workers", "ms")};
  const std::size_t shown = std::min(changes.size(), kMostLines);
  if (const std::size_t more = changes.size() - shown + views.forgotten(); more > 0)
    lines.push_back(fmt::format("  and {} before these", inspection::Counted(more, "change")));
  lines.insert(lines.end(), changes.end() - static_cast<std::ptrdiff_t>(shown), changes.end());
  return lines;
}

}  // namespace

nlohmann::json JobSummary(const JobRun& job, const std::string& exit_reason, double seconds) {
  const JobProgress& progress = job.progress();
  nlohmann::json views = nlohmann::json::array();
  for (const auto& [epoch, view] : progress.views().all()) {
    const job::Rebuild& rebuild = view.rebuild;
    views.push_back({{"epoch", epoch},
                     {"view", inspection::ViewName(epoch)},
                     {"reason", rebuild.reason},
                     {"planned", rebuild.planned},
                     {"members", rebuild.members},
                     {"worldSize", rebuild.world_size},
                     {"stepsLost", rebuild.steps_lost},
                     {"seconds", rebuild.seconds}});
  }
  return {{"job", job.name()},
          {"namespace", job.ns()},
          {"exitReason", exit_reason},
          {"message", job.end() ? job.end()->message : ""},
          {"steps", progress.step()},
          {"stepsLost", StepsLost(job)},
          {"restartsFromCheckpoint", RestartsFromCheckpoint(job)},
          {"worldSize", progress.views().world_size()},
          {"seconds", seconds},
          {"values", progress.values()},
          {"olderViews", progress.views().forgotten()},
          {"views", views}};
}

std::vector<std::string> JobSummaryLines(const JobRun& job, const std::string& exit_reason,
                                         double seconds) {
  const JobProgress& progress = job.progress();
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{}: {} after {:.1f} s{}, {} at the end", job.name(), exit_reason,
                              seconds, Steps(job),
                              inspection::Counted(progress.views().world_size(), "worker")));
  if (const std::int64_t again = RestartsFromCheckpoint(job); again > 0) {
    lines.push_back(fmt::format(
        "  began again from its checkpoint {}: no worker was left that held the state. The steps "
        "since that was written are lost, too, and not counted above",
        again == 1 ? "once" : fmt::format("{} times", again)));
  }
  if (const std::string values = LastValues(progress); !values.empty())
    lines.push_back("  last values:" + values);
  for (std::string& change : Changes(progress)) lines.push_back(std::move(change));
  return lines;
}

}  // namespace ringmaster::cli
