#include "sidecar/launcher/exit_policy.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/parse.h"

namespace ringmaster::launcher {
namespace {

using failure_policy::Rule;
using nlohmann::json;

bool ParseRule(const json& text, size_t index, std::vector<Rule>* rules, std::string* error) {
  std::string where = "RINGMASTER_FAILURE_POLICY: rules[" + std::to_string(index) + "]";
  if (!text.is_object()) return *error = where + " is not an object", false;
  Rule rule;
  json action = text.value("action", json());
  const auto known =
      action.is_string() ? failure_policy::ParseAction(action.get<std::string>()) : std::nullopt;
  if (!known) {
    return *error = where + ".action is " + action.dump() +
                    ", allowed are RestartWorker, ReplacePod, FailJob, Ignore",
           false;
  }
  rule.action = *known;
  json codes = text.value("onExitCodes", json::array());
  if (!codes.is_array()) return *error = where + ".onExitCodes is not a list of integers", false;
  for (const json& code : codes) {
    if (!code.is_number_integer()) {
      return *error = where + ".onExitCodes has " + code.dump() + ", an integer is expected", false;
    }
    rule.on_exit_codes.push_back(code.get<int>());
  }
  if (!rule.on_exit_codes.empty()) rules->push_back(std::move(rule));
  return true;
}

}  // namespace

bool ParseFailurePolicy(const std::string& text, std::vector<Rule>* rules, std::string* error) {
  rules->clear();
  if (text.empty()) return true;
  const auto parsed = fields::Parse(text, "RINGMASTER_FAILURE_POLICY");
  if (!parsed) return *error = parsed.error(), false;
  if (!parsed->is_object() && !parsed->is_null()) {
    return *error = "RINGMASTER_FAILURE_POLICY is not a JSON object: '" + text + "'", false;
  }
  json list = parsed->is_null() ? json::array() : parsed->value("rules", json::array());
  if (list.is_null()) return true;
  if (!list.is_array()) return *error = "RINGMASTER_FAILURE_POLICY: rules is not a list", false;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!ParseRule(list[i], i, rules, error)) return false;
  }
  return true;
}

ExitDecision DecideOnExit(const std::vector<Rule>& rules, int exit_code) {
  const failure_policy::Action action = failure_policy::ActionForProcess(rules, exit_code);
  const std::string code = std::to_string(exit_code);
  if (failure_policy::RuleFor(rules, exit_code) != nullptr)
    return {action, "a rule of failurePolicy names exit code " + code};
  if (const auto signal = failure_policy::SignalOfExit(exit_code))
    return {action, "died of signal " + std::to_string(*signal)};
  if (exit_code == failure_policy::kDroppedExitCode)
    return {action, "the others may have replaced it: it starts again and joins them"};
  return {action, "exit code " + code + " and no rule of failurePolicy names it"};
}

}  // namespace ringmaster::launcher
