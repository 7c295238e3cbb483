#include "operator/cli/failure_report.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "operator/api/exit_code.h"

namespace ringmaster::cli {
namespace {

using Lines = std::vector<std::string>;

constexpr std::string_view kLauncher = "ringmaster-launcher: ";
constexpr std::string_view kWorkerExited = "ringmaster-launcher: worker exited ";
constexpr std::string_view kTraceback = "Traceback (most recent call last):";
constexpr std::string_view kGroupTraceback =
    "  + Exception Group Traceback (most recent call last):";
constexpr std::string_view kInGroup =
    "  | ";  // in front of what such a traceback tells of the group
constexpr size_t kMostLines = 30;

struct WorkerEnd {
  int slot = 0;
  int exit_code = 0;
};

std::optional<int> NumberAfter(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const char* begin = line.data() + at + key.size();
  int number = 0;
  const auto read = std::from_chars(begin, line.data() + line.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

// The exit that ended the pod; else the last one, after which the worker was restarted.
std::optional<WorkerEnd> FindEnd(const std::deque<std::string>& log) {
  std::optional<WorkerEnd> found;
  for (const std::string& line : log) {
    if (!line.starts_with(kWorkerExited)) continue;
    const auto slot = NumberAfter(line, " slot="), code = NumberAfter(line, " exit_code=");
    if (!slot || !code) continue;
    found = WorkerEnd{*slot, *code};
    if (line.find(" action=RestartWorker") == std::string::npos) return found;
  }
  return found;
}

// The launcher's error: a program that can't be started, a worker that ended too early.
std::string LaunchersError(const std::deque<std::string>& log) {
  constexpr std::string_view kError = "ringmaster-launcher: error: ";
  for (const std::string& line : log)
    if (line.starts_with(kError)) return line.substr(kError.size());
  return "";
}

// "train failed: worker [3] ended with exit code 1"
std::string WhoEnded(const std::string& job, int number, int exit_code) {
  return fmt::format("{} failed: worker [{}] ended with exit code {}", job, number, exit_code);
}

// Reports a worker that ended with 0 too early. The condition has the pod's exit code, which the
// launcher chose, so its message must not name it as the worker's.
Lines ReportOfEarlyEnd(const std::string& job, std::string why, const FailedPod& pod, int slot) {
  constexpr std::string_view kWorkers = "its worker exited with";
  if (const size_t at = why.find(kWorkers); at != std::string::npos)
    why.replace(at, kWorkers.size(), "its launcher exited with");
  const std::string who = WhoEnded(job, pod.first_number + slot, 0);
  if (!pod.had_view)
    return {who + " without calling init()",
            "  a script calls init() first, and ends with shutdown() or by leaving the interpreter",
            "  " + why};
  return {who + " before the others",
          "  a script ends with shutdown() on all ranks, or by leaving the interpreter on all of "
          "them",
          "  " + why};
}

Lines ReportOfError(const std::string& job, const std::string& why, const FailedPod& pod,
                    const std::string& error) {
  const auto slot = NumberAfter(error, " slot=");
  if (slot && error.starts_with("worker ended before the job did"))
    return ReportOfEarlyEnd(job, why, pod, *slot);
  return {fmt::format("{} failed: {}", job, error.substr(0, error.rfind(" slot="))), "  " + why};
}

// Without the `[rank0]: ` that torch.distributed puts in front of the lines of a traceback.
std::string WithoutRank(std::string line) {
  constexpr std::string_view kRank = "[rank";
  while (line.starts_with(kRank)) {
    const size_t end = line.find_first_not_of("0123456789", kRank.size());
    if (end == std::string::npos || end == kRank.size() || line.compare(end, 3, "]: ") != 0) break;
    line.erase(0, end + 3);
  }
  return line;
}

// The output of this worker, without the number in front.
Lines LinesOf(int number, bool labelled, const std::deque<std::string>& log) {
  const std::string label = labelled ? fmt::format("[{}] ", number) : "";
  Lines own;
  for (const std::string& line : log)
    if (line.starts_with(label) && !line.starts_with(kLauncher))
      own.push_back(WithoutRank(line.substr(label.size())));
  while (!own.empty() && own.back().find_first_not_of(" \t\r") == std::string::npos) own.pop_back();
  return own;
}

bool IsTraceback(const Lines& lines, size_t at) {
  const bool ignored = at > 0 && lines[at - 1].starts_with("Exception ignored");
  return !ignored && (lines[at].starts_with(kTraceback) || lines[at].starts_with(kGroupTraceback));
}

// The index of the newest traceback; the number of lines if there is none.
size_t FindTraceback(const Lines& lines) {
  for (size_t at = lines.size(); at-- > 0;)
    if (IsTraceback(lines, at)) return at;
  return lines.size();
}

// "ValueError: no such file": the end of a traceback, before further lines of its message.
std::string ExceptionOf(const Lines& lines, size_t traceback) {
  const bool of_group = traceback < lines.size() && lines[traceback].starts_with(kGroupTraceback);
  for (size_t at = traceback + 1; at < lines.size(); ++at) {
    std::string line = lines[at];
    if (of_group && line.starts_with(kInGroup)) line.erase(0, kInGroup.size());
    if (!line.empty() && line[0] != ' ') return line;
  }
  return lines.empty() ? "" : lines.back();
}

std::string What(const Lines& lines, size_t traceback, int exit_code) {
  if (const auto signal = api::SignalOfExit(exit_code)) return "killed by " + SignalText(*signal);
  const std::string exception = ExceptionOf(lines, traceback);
  return exception.empty() ? "it printed nothing" : exception;
}

// Removes what the second line of the report says already.
std::string Without(std::string text, const std::string& said) {
  const size_t at = said.empty() ? std::string::npos : text.find(": " + said);
  if (at != std::string::npos) text.erase(at, said.size() + 2);
  return text;
}

void AddLast(const Lines& lines, size_t from, const std::string& indent, Lines* report) {
  const size_t shown = std::min(lines.size() - from, kMostLines);
  if (shown < lines.size() - from) report->push_back(indent + "...");
  for (size_t at = lines.size() - shown; at < lines.size(); ++at)
    report->push_back(indent + lines[at]);
}

}  // namespace

std::string SignalText(int signal) {
  const char* name = sigabbrev_np(signal);
  const char* description = sigdescr_np(signal);
  if (name == nullptr || description == nullptr) return fmt::format("signal {}", signal);
  std::string words = description;
  words[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(words[0])));
  return fmt::format("SIG{} (signal {}, {})", name, signal, words);
}

Lines FailureReport(const std::string& job, const std::string& why, const FailedPod& pod,
                    const std::deque<std::string>& log) {
  const auto end = pod.name.empty() ? std::nullopt : FindEnd(log);
  if (const std::string error = LaunchersError(log); !end && !error.empty())
    return ReportOfError(job, why, pod, error);
  if (!end) {
    Lines report = {fmt::format("{} failed: {}", job, why)};
    const Lines said = LinesOf(0, false, log);
    if (pod.shown || said.empty()) return report;
    report.push_back(fmt::format("  the log of {} ends with", pod.name));
    AddLast(said, said.size() - std::min(said.size(), kMostLines / 2), "  | ", &report);
    return report;
  }
  const int number = pod.first_number + end->slot;
  const Lines own = LinesOf(number, pod.labelled, log);
  const size_t traceback = FindTraceback(own);
  const std::string what = What(own, traceback, end->exit_code);
  Lines report = {WhoEnded(job, number, end->exit_code), "  " + what};
  if (!pod.shown) {
    const size_t from = traceback < own.size()
                            ? traceback
                            : own.size() - std::min<size_t>(own.size(), kMostLines / 2);
    AddLast(own, from, fmt::format("  [{}] ", number), &report);
  }
  report.push_back("  " + Without(why, what));
  return report;
}

}  // namespace ringmaster::cli
