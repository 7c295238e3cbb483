#include "operator/cli/log_lines.h"

#include <fmt/format.h>

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

}  // namespace ringmaster::cli
