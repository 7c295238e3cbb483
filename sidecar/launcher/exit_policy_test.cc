#include "sidecar/launcher/exit_policy.h"

#include <gtest/gtest.h>

#include "ringmaster/ringmaster.h"

namespace ringmaster::launcher {
namespace {

using failure_policy::Action;
using Rules = std::vector<failure_policy::Rule>;

Rules Parse(const std::string& text) {
  const auto policy = ParseFailurePolicy(text);
  EXPECT_TRUE(policy) << policy.error();
  return policy.value_or(Rules());
}

std::string ParseError(const std::string& text) {
  const auto policy = ParseFailurePolicy(text);
  EXPECT_FALSE(policy) << text;
  return policy ? "" : policy.error();
}

TEST(ExitPolicyTest, RestartsOnSignalsAndFailsOnCodesWithoutRules) {
  for (const char* none : {"", "{}", "null", R"({"rules":null})", R"({"nodeCooldownSeconds":5})"}) {
    Rules policy = Parse(none);
    EXPECT_EQ(DecideOnExit(policy, 137).action, Action::kRestartWorker);
    EXPECT_EQ(DecideOnExit(policy, 1).action, Action::kFailJob);
    EXPECT_EQ(DecideOnExit(policy, 143).action, Action::kRestartWorker) << "by a wrapper script";
    EXPECT_EQ(DecideOnExit(policy, 192).action, Action::kRestartWorker)
        << "by the last real-time signal";
    EXPECT_EQ(DecideOnExit(policy, 193).action, Action::kFailJob);
    EXPECT_EQ(DecideOnExit(policy, 255).action, Action::kFailJob);
  }
}

TEST(ExitPolicyTest, TheFirstRuleThatNamesTheCodeCounts) {
  Rules policy = Parse(R"({"rules":[{"onReasons":["Evicted"],"action":"ReplacePod"},
      {"onExitCodes":[3,4],"action":"Ignore"},{"onExitCodes":[4],"action":"RestartWorker"},
      {"onExitCodes":[139],"action":"FailJob"}]})");
  EXPECT_EQ(DecideOnExit(policy, 4).action, Action::kIgnore);
  EXPECT_EQ(DecideOnExit(policy, 139).action, Action::kFailJob);
  EXPECT_EQ(DecideOnExit(policy, 5).action, Action::kFailJob);
}

TEST(ExitPolicyTest, BadInputNamesFieldValueAndWhatIsAllowed) {
  EXPECT_EQ(ParseError("[1"), "RINGMASTER_FAILURE_POLICY: not JSON: [1");
  EXPECT_NE(ParseError("[1]").find("not a JSON object"), std::string::npos);
  const std::string brackets = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_EQ(ParseError(R"({"rules":[{"action":)" + brackets + "}]}"),
            "RINGMASTER_FAILURE_POLICY: nested deeper than 64 levels");
  EXPECT_NE(ParseError(R"({"rules":[{"onExitCodes":[1],"action":"Restart"}]})")
                .find("rules[0].action is \"Restart\", allowed are"),
            std::string::npos);
  EXPECT_NE(ParseError(R"({"rules":[{"onExitCodes":["x"],"action":"Ignore"}]})")
                .find("onExitCodes has \"x\""),
            std::string::npos);
  EXPECT_NE(ParseError(R"({"rules":5})").find("rules is not a list"), std::string::npos);
}

TEST(ExitPolicyTest, ADroppedWorkerStartsAgainUnlessARuleNamesItsCode) {
  static_assert(RM_EXIT_DROPPED == failure_policy::kDroppedExitCode, "two names of one fact");
  EXPECT_EQ(DecideOnExit({}, RM_EXIT_DROPPED).action, Action::kRestartWorker);
  EXPECT_EQ(DecideOnExit({{{RM_EXIT_DROPPED}, {}, Action::kFailJob}}, RM_EXIT_DROPPED).action,
            Action::kFailJob);
}

}  // namespace
}  // namespace ringmaster::launcher
