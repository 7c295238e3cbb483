#include "operator/inspection/text_format.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "common/job/rebuild.h"

namespace ringmaster::inspection {

std::string ViewName(uint64_t epoch) {
  return fmt::format("{}.{}", epoch >> 40, epoch & ((uint64_t{1} << 40) - 1));
}

std::string Counted(size_t n, const char* noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string FirstFew(const std::vector<std::string>& words) {
  constexpr size_t kMost = 4;
  std::string text;
  for (size_t i = 0; i < words.size() && i < kMost; ++i) text += (i ? ", " : "") + words[i];
  if (words.size() > kMost) text += fmt::format(" and {} more", words.size() - kMost);
  return text;
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

}  // namespace ringmaster::inspection
