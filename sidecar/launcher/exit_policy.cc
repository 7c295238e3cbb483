#include "sidecar/launcher/exit_policy.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/parse.h"

namespace ringmaster::launcher {
namespace {

using failure_policy::Rule;
using nlohmann::json;

tl::expected<Rule, std::string> ParseRule(const json& text, size_t index) {
  std::string where = "RINGMASTER_FAILURE_POLICY: rules[" + std::to_string(index) + "]";
  if (!text.is_object()) return tl::unexpected(where + " is not an object");
  Rule rule;
  json action = text.value("action", json());
  const auto known =
      action.is_string() ? failure_policy::ParseAction(action.get<std::string>()) : std::nullopt;
  if (!known) {
    return tl::unexpected(where + ".action is " + action.dump() +
                          ", allowed are RestartWorker, ReplacePod, FailJob, Ignore");
  }
  rule.action = *known;
  json codes = text.value("onExitCodes", json::array());
  if (!codes.is_array()) return tl::unexpected(where + ".onExitCodes is not a list of integers");
  for (const json& code : codes) {
    if (!code.is_number_integer()) {
      return tl::unexpected(where + ".onExitCodes has " + code.dump() + ", an integer is expected");
    }
    rule.on_exit_codes.push_back(code.get<int>());
  }
  return rule;
}

}  // namespace

tl::expected<std::vector<Rule>, std::string> ParseFailurePolicy(const std::string& text) {
  std::vector<Rule> rules;
  if (text.empty()) return rules;
  const auto parsed = fields::Parse(text, "RINGMASTER_FAILURE_POLICY");
  if (!parsed) return tl::unexpected(parsed.error());
  if (!parsed->is_object() && !parsed->is_null()) {
    return tl::unexpected("RINGMASTER_FAILURE_POLICY is not a JSON object: '" + text + "'");
  }
  json list = parsed->is_null() ? json::array() : parsed->value("rules", json::array());
  if (list.is_null()) return rules;
  if (!list.is_array())
    return tl::unexpected(std::string("RINGMASTER_FAILURE_POLICY: rules is not a list"));
  for (size_t i = 0; i < list.size(); ++i) {
    auto rule = ParseRule(list[i], i);
    if (!rule) return tl::unexpected(rule.error());
    if (!rule->on_exit_codes.empty()) rules.push_back(std::move(*rule));
  }
  return rules;
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
