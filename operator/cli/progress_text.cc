#include "operator/cli/progress_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "operator/inspection/text_format.h"

namespace ringmaster::cli {
namespace {

constexpr char kTotal[] = "total_steps";

std::string Worker(const inspection::RankHolder& rank) {
  return fmt::format("{}/{}", rank.pod, rank.slot);
}

std::vector<std::string> Workers(const std::vector<inspection::RankHolder>& ranks) {
  std::vector<std::string> names;
  for (const inspection::RankHolder& rank : ranks) names.push_back(Worker(rank));
  return names;
}

std::vector<std::string> PodsOf(const std::vector<inspection::RankHolder>& ranks) {
  std::vector<std::string> names;
  for (const inspection::RankHolder& rank : ranks)
    if (std::find(names.begin(), names.end(), rank.pod) == names.end()) names.push_back(rank.pod);
  return names;
}

// Of workers that are named by their pod, with /slot where it has several.
std::vector<std::string> PodsOf(const std::vector<std::string>& workers) {
  std::vector<std::string> names;
  for (const std::string& worker : workers) {
    const std::string pod = worker.substr(0, worker.find('/'));
    if (std::find(names.begin(), names.end(), pod) == names.end()) names.push_back(pod);
  }
  return names;
}

std::string Named(const char* noun, const std::vector<std::string>& names) {
  if (names.empty()) return noun;
  return fmt::format("{}{} {}", noun, names.size() > 1 ? "s" : "", inspection::FirstFew(names));
}

std::string HowText(const std::vector<std::string>& pods, const JobProgress& job) {
  if (pods.size() != 1) return "";
  std::string how = job.HowEnded(pods[0]);
  return how.empty() ? "" : " (" + how + ")";
}

// What happened, as a sentence without its verb phrase's time.
std::string Cause(const ViewRecord& view, const JobProgress& job) {
  const std::string& reason = view.rebuild.reason;
  std::vector<std::string> left = view.rebuild.left.empty() ? PodsOf(view.lost) : view.rebuild.left;
  std::vector<std::string> joined =
      view.rebuild.joined.empty() ? PodsOf(view.gained) : view.rebuild.joined;
  // A view in which nobody comes or goes has the reason of the one before.
  if (view.rebuild.planned && left.empty() && joined.empty()) return "nobody came or left";
  if (reason == "Bootstrap") {
    const std::string workers =
        fmt::format("{} in {} begin", inspection::Counted(view.rebuild.world_size, "worker"),
                    inspection::Counted(PodsOf(view.rebuild.members).size(), "pod"));
    if (view.old_size == 0) return workers;
    return "nobody had the state any more; " + workers + " again from the checkpoint";
  }
  if (reason == "WorkerLost") {
    auto names = view.lost.empty() ? left : Workers(view.lost);
    return Named("worker", names) + " lost" + HowText(PodsOf(view.lost), job);
  }
  if (reason == "PodLost") {
    const auto pods = PodsOf(left);
    return Named("pod", pods) + " lost" + HowText(pods, job);
  }
  if (reason == "PodDrained") return Named("pod", PodsOf(left)) + " left by plan";
  if (reason == "WorkerJoined") {
    auto names = view.gained.empty() ? joined : Workers(view.gained);
    return Named("worker", names) + " restarted and joined";
  }
  if (reason == "PodJoined") return Named("pod", PodsOf(joined)) + " joined";
  if (reason == "Rejoin") return Named("pod", PodsOf(joined)) + " came back";
  return reason.empty() ? "the members changed" : reason;
}

}  // namespace

std::string ChangeText(const ViewRecord& view, const JobProgress& job) {
  const job::Rebuild& rebuild = view.rebuild;
  std::string text =
      fmt::format("view {}: {}", inspection::ViewName(rebuild.epoch), Cause(view, job));
  if (view.old_size == 0) return text;
  text += fmt::format("; {} -> {}", view.old_size, rebuild.world_size);
  if (rebuild.seconds.empty()) return text;
  double total = job::TotalSeconds(rebuild.seconds);
  if (total == 0) return text;
  text += fmt::format("; {} {} ({})", rebuild.planned ? "paused for" : "back to stepping after",
                      inspection::Milliseconds(total), inspection::PhasesText(rebuild.seconds));
  if (rebuild.steps_lost) text += fmt::format("; {} STEPS LOST", rebuild.steps_lost);
  return text;
}

std::string ProgressText(const JobProgress& job) {
  const auto& values = job.values();
  auto total = values.find(kTotal);
  std::string text = fmt::format("step {}", job.step());
  if (total != values.end()) text += "/" + inspection::Number(total->second);
  for (const auto& [name, value] : values)
    if (name != kTotal && name != "samples")
      text += fmt::format("  {} {}", name, inspection::Number(value));
  if (job.samples_per_second() > 0)
    text += fmt::format("  {:.0f} samples/s", job.samples_per_second());
  text += "  " + inspection::Counted(job.views().world_size(), "worker");
  if (const auto epoch = job.views().epoch()) text += "  view " + inspection::ViewName(epoch);
  std::string state = job.state();
  if (!state.empty() && state != "Training") text += "  " + state;
  return text;
}

std::string Bar(const JobProgress& job, int width) {
  auto total = job.values().find(kTotal);
  if (total == job.values().end() || total->second <= 0 || width <= 0) return "";
  double done = std::min(1.0, static_cast<double>(job.step()) / total->second);
  int filled = static_cast<int>(done * width);
  return "[" + std::string(filled, '#') + std::string(width - filled, '-') + "]";
}

}  // namespace ringmaster::cli
