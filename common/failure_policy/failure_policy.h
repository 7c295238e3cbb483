// What happens when a worker process or its pod ends: spec.failurePolicy as pure functions.
//
// The launcher asks about a process, the operator about the pod that the process was in. Both use
// the same rules and read exit codes in the same way.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::failure_policy {

enum class Action { kRestartWorker, kReplacePod, kFailJob, kIgnore };

const char* ToString(Action action);
std::optional<Action> ParseAction(std::string_view name);

struct Rule {
  std::vector<int> on_exit_codes;
  std::vector<std::string> on_reasons;  // why a pod failed: Evicted, ...
  Action action = Action::kRestartWorker;
  friend bool operator==(const Rule&, const Rule&) = default;
};

// An exit code is 128 + N where signal N ended the process, or ended what a wrapper script ran.
// Codes above 192 stand for no signal: sys.exit(-1) gives 255, and so does a container runtime that
// doesn't know how a container ended.
constexpr std::optional<int> SignalOfExit(int exit_code) {
  constexpr int kLastSignal = 64;
  if (exit_code <= 128 || exit_code > 128 + kLastSignal) return std::nullopt;
  return exit_code - 128;
}

// The exit code of a worker that the others may have replaced: its sidecar did not answer for
// longer than the fence, or a view left it out, and its script did not go on after that. Such a
// worker is started again, and that counts as no failure. It is the first code that sysexits.h
// leaves free.
inline constexpr int kDroppedExitCode = 79;

// The program ended by itself, with a failure.
constexpr bool IsOwnFailure(int exit_code) {
  return exit_code != 0 && exit_code != kDroppedExitCode && !SignalOfExit(exit_code).has_value();
}

// The first rule that names the code or the reason. Null: no rule does.
const Rule* RuleFor(const std::vector<Rule>& rules, std::optional<int> exit_code,
                    const std::string& reason = "");

// For a process of a pod that lives. Without a rule a process that a signal ended, or that was
// dropped, starts again, and any other exit code fails the job.
Action ActionForProcess(const std::vector<Rule>& rules, int exit_code);

// For a pod that has failed. `exit_code`: nullopt if the worker never ran. `from_outside`: the
// cluster ended the pod. Without a rule a pod that a signal or the cluster ended, or whose worker
// never ran or was dropped, is replaced, and any other exit code fails the job.
Action ActionForPod(const std::vector<Rule>& rules, std::optional<int> exit_code,
                    const std::string& reason, bool from_outside);

}  // namespace ringmaster::failure_policy
