#include "sidecar/launcher/failure_policy.h"

#include <gtest/gtest.h>

namespace ringmaster::launcher {
namespace {

FailurePolicy Parse(const std::string& text) {
  FailurePolicy policy;
  std::string error;
  EXPECT_TRUE(ParseFailurePolicy(text, &policy, &error)) << error;
  return policy;
}

std::string ParseError(const std::string& text) {
  FailurePolicy policy;
  std::string error;
  EXPECT_FALSE(ParseFailurePolicy(text, &policy, &error)) << text;
  return error;
}

TEST(FailurePolicy, RestartsOnSignalsAndFailsOnCodesWithoutRules) {
  for (const char* none : {"", "{}", "null", R"({"rules":null})", R"({"nodeCooldownSeconds":5})"}) {
    FailurePolicy policy = Parse(none);
    EXPECT_EQ(DecideOnExit(policy, 137, 9).action, FailureAction::kRestartWorker);
    EXPECT_EQ(DecideOnExit(policy, 1, 0).action, FailureAction::kFailJob);
    EXPECT_EQ(DecideOnExit(policy, 143, 0).action, FailureAction::kRestartWorker)
        << "by a wrapper script";
    EXPECT_EQ(DecideOnExit(policy, 192, 0).action, FailureAction::kRestartWorker)
        << "by the last real-time signal";
    EXPECT_EQ(DecideOnExit(policy, 193, 0).action, FailureAction::kFailJob);
    EXPECT_EQ(DecideOnExit(policy, 255, 0).action, FailureAction::kFailJob);
  }
}

TEST(FailurePolicy, TheFirstRuleThatNamesTheCodeCounts) {
  FailurePolicy policy = Parse(R"({"rules":[{"onReasons":["Evicted"],"action":"ReplacePod"},
      {"onExitCodes":[3,4],"action":"Ignore"},{"onExitCodes":[4],"action":"RestartWorker"},
      {"onExitCodes":[139],"action":"FailJob"}]})");
  EXPECT_EQ(DecideOnExit(policy, 4, 0).action, FailureAction::kIgnore);
  EXPECT_EQ(DecideOnExit(policy, 139, 11).action, FailureAction::kFailJob);
  EXPECT_EQ(DecideOnExit(policy, 5, 0).action, FailureAction::kFailJob);
}

TEST(FailurePolicy, BadInputNamesFieldValueAndWhatIsAllowed) {
  EXPECT_NE(ParseError("[1").find("not a JSON object"), std::string::npos);
  EXPECT_NE(ParseError(R"({"rules":[{"onExitCodes":[1],"action":"Restart"}]})")
                .find("rules[0].action is \"Restart\", allowed are"),
            std::string::npos);
  EXPECT_NE(ParseError(R"({"rules":[{"onExitCodes":["x"],"action":"Ignore"}]})")
                .find("onExitCodes has \"x\""),
            std::string::npos);
  EXPECT_NE(ParseError(R"({"rules":5})").find("rules is not a list"), std::string::npos);
}

}  // namespace
}  // namespace ringmaster::launcher
