// What happens when a worker process ends: spec.failurePolicy as a pure function.
//
// Only rules about exit codes are the launcher's; rules about pod reasons (Evicted, ...) are the
// operator's.
#pragma once

#include <string>
#include <vector>

namespace ringmaster::launcher {

enum class FailureAction { kRestartWorker, kReplacePod, kFailJob, kIgnore };

const char* ActionName(FailureAction action);

struct FailureRule {
  std::vector<int> exit_codes;
  FailureAction action = FailureAction::kFailJob;
};

struct FailurePolicy {
  std::vector<FailureRule> rules;
};

struct FailureDecision {
  FailureAction action;
  std::string reason;  // for logs and for the `exited` frame's message
};

// Parses RINGMASTER_FAILURE_POLICY; empty text: no rules. On bad input returns false and `error`
// names the field, the value and what is allowed.
bool ParseFailurePolicy(const std::string& text, FailurePolicy* policy, std::string* error);

// `exit_code` is 128+n for signal n (`signal`, else 0). The first rule that names the code counts;
// without one, signals restart the worker and other codes fail the job.
FailureDecision DecideOnExit(const FailurePolicy& policy, int exit_code, int signal);

}  // namespace ringmaster::launcher
