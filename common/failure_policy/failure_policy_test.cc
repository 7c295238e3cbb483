#include "common/failure_policy/failure_policy.h"

#include <gtest/gtest.h>

namespace ringmaster::failure_policy {
namespace {

TEST(FailurePolicyTest, TheFirstRuleThatNamesTheCodeOrTheReasonCounts) {
  const std::vector<Rule> rules = {{{}, {"Evicted"}, Action::kIgnore},
                                   {{3, 4}, {}, Action::kReplacePod},
                                   {{4}, {}, Action::kRestartWorker},
                                   {{139}, {}, Action::kFailJob}};
  EXPECT_EQ(ActionForProcess(rules, 4), Action::kReplacePod);
  EXPECT_EQ(ActionForProcess(rules, 139), Action::kFailJob);
  EXPECT_EQ(ActionForPod(rules, 4, "Evicted", true), Action::kIgnore);
  EXPECT_EQ(ActionForPod(rules, {}, "Evicted", true), Action::kIgnore);
  EXPECT_EQ(RuleFor(rules, {}, ""), nullptr);
}

TEST(FailurePolicyTest, WithoutARuleASignalIsNoFaultOfTheScriptAndAnExitCodeIs) {
  struct {
    int exit_code;
    Action process, pod;
  } cases[] = {{1, Action::kFailJob, Action::kFailJob},
               {137, Action::kRestartWorker, Action::kReplacePod},
               {192, Action::kRestartWorker, Action::kReplacePod},  // the last real-time signal
               {193, Action::kFailJob, Action::kFailJob},
               {255, Action::kFailJob, Action::kFailJob}};
  for (const auto& [exit_code, process, pod] : cases) {
    EXPECT_EQ(ActionForProcess({}, exit_code), process) << exit_code;
    EXPECT_EQ(ActionForPod({}, exit_code, "", false), pod) << exit_code;
    EXPECT_EQ(ActionForPod({}, exit_code, "Evicted", true), Action::kReplacePod) << exit_code;
  }
  EXPECT_EQ(ActionForPod({}, std::nullopt, "", false), Action::kReplacePod) << "it never ran";
}

TEST(FailurePolicyTest, ActionsAreNamedAsTheJobNamesThem) {
  for (Action action :
       {Action::kRestartWorker, Action::kReplacePod, Action::kFailJob, Action::kIgnore}) {
    EXPECT_EQ(ParseAction(ToString(action)), action);
  }
  EXPECT_EQ(ParseAction("Restart"), std::nullopt);
}

}  // namespace
}  // namespace ringmaster::failure_policy
