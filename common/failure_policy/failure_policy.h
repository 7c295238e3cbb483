// What happens when a worker process or its pod ends: spec.failurePolicy as pure functions.
//
// The launcher asks for a process, the operator for the pod that the process was in: both by the
// same rules and the same reading of exit codes.
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
  std::vector<std::string> on_reasons;  // of a pod: Evicted, ...
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

// For a pod that has failed. `from_outside`: the cluster ended it. Without an exit code the worker
// never ran. Without a rule a pod that a signal or the cluster ended is replaced, and any other
// exit code fails the job.
Action ActionForPod(const std::vector<Rule>& rules, std::optional<int> exit_code,
                    const std::string& reason, bool from_outside);

}  // namespace ringmaster::failure_policy
