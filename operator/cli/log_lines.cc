#include "operator/cli/log_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/fields/fields.h"

namespace ringmaster::cli {

bool IsLaunchersAccount(std::string_view line) {
  return line.starts_with("ringmaster-launcher: ") &&
         !line.starts_with("ringmaster-launcher: error: ");
}

bool LabelsLines(const nlohmann::json& job) {
  return fields::IntegerAt(job, "/spec/slotsPerWorker", 1) +
             fields::IntegerAt(job, "/spec/elasticPolicy/standbyPerPod") >
         1;
}

std::optional<std::string> LineOfWorker(int number, bool labelled, const std::string& line) {
  if (IsLaunchersAccount(line)) return std::nullopt;
  const std::string label = fmt::format("[{}] ", number);
  if (!labelled) return label + line;
  return line.starts_with(label) ? std::optional(line) : std::nullopt;
}

std::string WorkersText(std::vector<int> pods, int slots) {
  if (pods.empty()) return "it has no pods";
  std::sort(pods.begin(), pods.end());
  std::vector<std::string> ranges;
  for (size_t first = 0, end = 0; first < pods.size(); first = end) {
    for (end = first + 1; end < pods.size() && pods[end] <= pods[end - 1] + 1;) ++end;
    const int from = pods[first] * slots, to = (pods[end - 1] + 1) * slots - 1;
    ranges.push_back(from == to ? std::to_string(from) : fmt::format("{}-{}", from, to));
  }
  return fmt::format("it has workers {}", fmt::join(ranges, ", "));
}

}  // namespace ringmaster::cli
