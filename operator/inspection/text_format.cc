#include "operator/cli/text_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace ringmaster::cli {
namespace {

constexpr char kTotal[] = "total_steps";

std::string Worker(const RankStatus& rank) { return fmt::format("{}/{}", rank.pod, rank.slot); }

std::string Joined(const std::vector<std::string>& words) {
  constexpr size_t kMost = 4;
  std::string text;
  for (size_t i = 0; i < words.size() && i < kMost; ++i) text += (i ? ", " : "") + words[i];
  if (words.size() > kMost) text += fmt::format(" and {} more", words.size() - kMost);
  return text;
}

std::vector<std::string> Workers(const std::vector<RankStatus>& ranks) {
  std::vector<std::string> names;
  for (const RankStatus& rank : ranks) names.push_back(Worker(rank));
  return names;
}

std::vector<std::string> PodsOf(const std::vector<RankStatus>& ranks) {
  std::vector<std::string> names;
  for (const RankStatus& rank : ranks)
    if (std::find(names.begin(), names.end(), rank.pod) == names.end()) names.push_back(rank.pod);
  return names;
}

std::string Named(const char* noun, const std::vector<std::string>& names) {
  if (names.empty()) return noun;
  return fmt::format("{}{} {}", noun, names.size() > 1 ? "s" : "", Joined(names));
}

std::string HowText(const std::vector<std::string>& pods, const JobProgress& job) {
  if (pods.size() != 1) return "";
  std::string how = job.HowEnded(pods[0]);
  return how.empty() ? "" : " (" + how + ")";
}

// What happened, as part of a sentence, without the durations.
std::string Cause(const ViewRecord& view, const JobProgress& job) {
  const std::string& reason = view.rebuild.reason;
  std::vector<std::string> left = view.rebuild.left.empty() ? PodsOf(view.lost) : view.rebuild.left;
  std::vector<std::string> joined =
      view.rebuild.joined.empty() ? PodsOf(view.gained) : view.rebuild.joined;
  if (reason == "Bootstrap") {
    const std::string workers =
        fmt::format("{} in {} begin", Counted(view.rebuild.world_size, "worker"),
                    Counted(view.rebuild.members.size(), "pod"));
    if (view.old_size == 0) return workers;
    return "nobody had the state any more; " + workers + " again from the checkpoint";
  }
  if (reason == "WorkerLost") {
    auto names = view.lost.empty() ? left : Workers(view.lost);
    return Named("worker", names) + " lost" + HowText(PodsOf(view.lost), job);
  }
  if (reason == "PodLost") return Named("pod", left) + " lost" + HowText(left, job);
  if (reason == "PodDrained") return Named("pod", left) + " left by plan";
  if (reason == "WorkerJoined") {
    auto names = view.gained.empty() ? joined : Workers(view.gained);
    return Named("worker", names) + " restarted and joined";
  }
  if (reason == "PodJoined") return Named("pod", joined) + " joined";
  if (reason == "Rejoin") return Named("pod", joined) + " came back";
  return reason.empty() ? "the members changed" : reason;
}

}  // namespace

std::string ViewName(uint64_t epoch) {
  return fmt::format("{}.{}", epoch >> 40, epoch & ((uint64_t{1} << 40) - 1));
}

std::string Counted(size_t n, const char* noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string Milliseconds(double seconds) {
  if (seconds >= 1) return fmt::format("{:.1f} s", seconds);
  return fmt::format("{:.0f} ms", seconds * 1e3);
}

std::string Number(double value) {
  if (std::fabs(value) < 1e15 && value == std::floor(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

std::string Clock(double seconds) { return fmt::format("{:6.1f}s", seconds); }

std::string PhasesText(const std::map<std::string, double>& seconds) {
  std::string text;
  for (const char* phase : job::kPhases) {
    if (phase == std::string_view(job::kStop)) continue;  // part of the decision
    auto found = seconds.find(phase);
    if (found == seconds.end()) continue;
    text += fmt::format("{}{} {:.0f}", text.empty() ? "" : ", ", phase, found->second * 1e3);
  }
  return text;
}

std::string ChangeText(const ViewRecord& view, const JobProgress& job) {
  const job::Rebuild& rebuild = view.rebuild;
  std::string text = fmt::format("view {}: {}", ViewName(rebuild.epoch), Cause(view, job));
  if (view.old_size == 0) return text;
  text += fmt::format("; {} -> {}", view.old_size, rebuild.world_size);
  if (rebuild.seconds.empty()) return text;
  double total = job::TotalSeconds(rebuild.seconds);
  if (total == 0) return text;
  text += fmt::format("; {} {} ({})", rebuild.planned ? "paused for" : "back to stepping after",
                      Milliseconds(total), PhasesText(rebuild.seconds));
  if (rebuild.steps_lost) text += fmt::format("; {} STEPS LOST", rebuild.steps_lost);
  return text;
}

std::string ProgressText(const JobProgress& job) {
  const auto& values = job.values();
  auto total = values.find(kTotal);
  std::string text = fmt::format("step {}", job.step());
  if (total != values.end()) text += "/" + Number(total->second);
  for (const auto& [name, value] : values)
    if (name != kTotal && name != "samples") text += fmt::format("  {} {}", name, Number(value));
  if (job.samples_per_second() > 0)
    text += fmt::format("  {:.0f} samples/s", job.samples_per_second());
  text += "  " + Counted(job.world_size(), "worker");
  if (job.epoch()) text += "  view " + ViewName(job.epoch());
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
