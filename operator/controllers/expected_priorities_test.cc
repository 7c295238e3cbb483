#include "operator/controllers/expected_priorities.h"

#include "operator/controllers/testing/parts_fixture.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

class ExpectedPrioritiesTest : public testing::PartsTest {
 protected:
  void Make(const std::string& name, int value, const Json& more = Json::object()) {
    Json priority_class = {{"metadata", {{"name", name}}}, {"value", value}};
    priority_class.update(more);
    const auto made = api_->Create(kube::PriorityClasses(), "", priority_class);
    ASSERT_TRUE(made) << made.error().message;
  }
  // "class value"; "none"; the error.
  std::string Found() {
    ExpectedPriorities priorities(api_);
    const auto found = priorities.Of(job_);
    if (!found) return "error: " + found.error().message;
    if (!*found) return "none";
    return (*found)->class_name + " " + std::to_string((*found)->value);
  }
  Json& Template() { return job_.spec.worker.pod_template["spec"]; }
};

TEST_F(ExpectedPrioritiesTest, TheTemplateComesBeforeThePolicyAndBothBeforeTheDefault) {
  Make("usual", 5, {{"globalDefault", true}});
  Make("low", -10);
  Make("high", 10);
  EXPECT_EQ(Found(), "usual 5");
  job_.spec.run_policy.scheduling_policy.priority_class = "low";
  EXPECT_EQ(Found(), "low -10");
  Template()["priorityClassName"] = "high";
  EXPECT_EQ(Found(), "high 10");
}

TEST_F(ExpectedPrioritiesTest, WithoutADefaultThereIsNone) {
  Make("usual", 5);
  EXPECT_EQ(Found(), "none");
  Template()["priority"] = 3;
  EXPECT_EQ(Found(), " 3");
}

TEST_F(ExpectedPrioritiesTest, OfSeveralDefaultsTheLowestCountsAsAtTheApiServer) {
  Make("a", 5, {{"globalDefault", true}});
  Make("b", 2, {{"globalDefault", true}});
  Make("c", 9, {{"globalDefault", true}});
  EXPECT_EQ(Found(), "b 2");
}

TEST_F(ExpectedPrioritiesTest, WhoMayNotListClassesKnowsNoDefaultAndWhoFailsKnowsNothing) {
  Make("usual", 5, {{"globalDefault", true}});
  api_->refused_verb = "list";
  EXPECT_EQ(Found(), "none");
  api_->refusal.code = kube::ErrorCode::kUnavailable;
  EXPECT_THAT(Found(), ::testing::StartsWith("error"));
}

TEST_F(ExpectedPrioritiesTest, AClassThatIsNotThereIsAnError) {
  job_.spec.run_policy.scheduling_policy.priority_class = "low";
  EXPECT_THAT(Found(), ::testing::StartsWith("error"));
}

}  // namespace
}  // namespace ringmaster::controllers
