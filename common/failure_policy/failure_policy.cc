#include "common/failure_policy/failure_policy.h"

#include <algorithm>

namespace ringmaster::failure_policy {

const char* ToString(Action action) {
  switch (action) {
    case Action::kRestartWorker:
      return "RestartWorker";
    case Action::kReplacePod:
      return "ReplacePod";
    case Action::kFailJob:
      return "FailJob";
    case Action::kIgnore:
      return "Ignore";
  }
  return "?";
}

std::optional<Action> ParseAction(std::string_view name) {
  for (Action action :
       {Action::kRestartWorker, Action::kReplacePod, Action::kFailJob, Action::kIgnore}) {
    if (name == ToString(action)) return action;
  }
  return std::nullopt;
}

const Rule* RuleFor(const std::vector<Rule>& rules, std::optional<int> exit_code,
                    const std::string& reason) {
  for (const Rule& rule : rules) {
    const auto& codes = rule.on_exit_codes;
    const auto& reasons = rule.on_reasons;
    if ((exit_code && std::find(codes.begin(), codes.end(), *exit_code) != codes.end()) ||
        std::find(reasons.begin(), reasons.end(), reason) != reasons.end()) {
      return &rule;
    }
  }
  return nullptr;
}

Action ActionForProcess(const std::vector<Rule>& rules, int exit_code) {
  if (const Rule* rule = RuleFor(rules, exit_code)) return rule->action;
  return IsOwnFailure(exit_code) ? Action::kFailJob : Action::kRestartWorker;
}

Action ActionForPod(const std::vector<Rule>& rules, std::optional<int> exit_code,
                    const std::string& reason, bool from_outside) {
  if (const Rule* rule = RuleFor(rules, exit_code, reason)) return rule->action;
  if (from_outside || !exit_code || !IsOwnFailure(*exit_code)) return Action::kReplacePod;
  return Action::kFailJob;
}

}  // namespace ringmaster::failure_policy
