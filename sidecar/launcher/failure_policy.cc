#include "sidecar/launcher/failure_policy.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ringmaster::launcher {
namespace {

using nlohmann::json;

constexpr FailureAction kActions[] = {FailureAction::kRestartWorker, FailureAction::kReplacePod,
                                      FailureAction::kFailJob, FailureAction::kIgnore};

bool ParseAction(const std::string& name, FailureAction* action) {
  for (FailureAction candidate : kActions) {
    if (name == ActionName(candidate)) {
      *action = candidate;
      return true;
    }
  }
  return false;
}

bool ParseRule(const json& text, size_t index, FailurePolicy* policy, std::string* error) {
  std::string where = "RINGMASTER_FAILURE_POLICY: rules[" + std::to_string(index) + "]";
  if (!text.is_object()) return *error = where + " is not an object", false;
  FailureRule rule;
  json action = text.value("action", json());
  if (!action.is_string() || !ParseAction(action.get<std::string>(), &rule.action)) {
    return *error = where + ".action is " + action.dump() +
                    ", allowed are RestartWorker, ReplacePod, FailJob, Ignore",
           false;
  }
  json codes = text.value("onExitCodes", json::array());
  if (!codes.is_array()) return *error = where + ".onExitCodes is not a list of integers", false;
  for (const json& code : codes) {
    if (!code.is_number_integer()) {
      return *error = where + ".onExitCodes has " + code.dump() + ", an integer is expected", false;
    }
    rule.exit_codes.push_back(code.get<int>());
  }
  if (!rule.exit_codes.empty()) policy->rules.push_back(std::move(rule));
  return true;
}

}  // namespace

const char* ActionName(FailureAction action) {
  switch (action) {
    case FailureAction::kRestartWorker:
      return "RestartWorker";
    case FailureAction::kReplacePod:
      return "ReplacePod";
    case FailureAction::kFailJob:
      return "FailJob";
    case FailureAction::kIgnore:
      return "Ignore";
  }
  return "?";
}

bool ParseFailurePolicy(const std::string& text, FailurePolicy* policy, std::string* error) {
  *policy = {};
  if (text.empty()) return true;
  json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() && !parsed.is_null()) {
    return *error = "RINGMASTER_FAILURE_POLICY is not a JSON object: '" + text + "'", false;
  }
  json rules = parsed.is_null() ? json::array() : parsed.value("rules", json::array());
  if (rules.is_null()) return true;
  if (!rules.is_array()) return *error = "RINGMASTER_FAILURE_POLICY: rules is not a list", false;
  for (size_t i = 0; i < rules.size(); ++i) {
    if (!ParseRule(rules[i], i, policy, error)) return false;
  }
  return true;
}

FailureDecision DecideOnExit(const FailurePolicy& policy, int exit_code, int signal) {
  // A wrapper script reports the death of what it ran as 128+n. As the operator reads the codes of
  // containers (operator/api/exit_code.h): the two must not disagree about one.
  constexpr int kLastSignal = 64;
  if (signal == 0 && exit_code > 128 && exit_code <= 128 + kLastSignal) signal = exit_code - 128;
  for (const FailureRule& rule : policy.rules) {
    if (std::find(rule.exit_codes.begin(), rule.exit_codes.end(), exit_code) !=
        rule.exit_codes.end()) {
      return {rule.action, "a rule of failurePolicy names exit code " + std::to_string(exit_code)};
    }
  }
  if (signal != 0)
    return {FailureAction::kRestartWorker, "died of signal " + std::to_string(signal)};
  return {FailureAction::kFailJob,
          "exit code " + std::to_string(exit_code) + " and no rule of failurePolicy names it"};
}

}  // namespace ringmaster::launcher
