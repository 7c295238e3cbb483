// Pods that the API server refuses: what the job says of it, and how often it is tried.
#include "operator/controllers/creation_problems.h"

#include "operator/controllers/testing/controller_fixture.h"

namespace ringmaster::controllers {
namespace {

using ::testing::HasSubstr;

class RefusedPodsTest : public testing::ControllerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ControllerTest::SetUp());
    options_.queue.first_backoff = std::chrono::milliseconds(1);
    options_.queue.max_backoff = std::chrono::milliseconds(20);
  }
  // A job of three pods that are refused.
  void StartWith(kube::Error refusal) {
    door_->RefusePods(std::move(refusal));
    Apply(3);
    ASSERT_NO_FATAL_FAILURE(StartController());
  }
  bool CreatedIs(bool value, const std::string& reason) {
    const auto status = Status();
    const api::Condition* created = status.Find("Created");
    return created != nullptr && created->status == value && created->reason == reason;
  }
  // Has the controller look at the job again, and waits until it has.
  void LookAgain() {
    const auto spoiled =
        api_->Patch(kube::HorovodJobs(), ns_, "digits", {{"status", {{"state", "spoiled"}}}},
                    {.subresource = "status"});
    ASSERT_TRUE(spoiled) << spoiled.error().message;
    ASSERT_TRUE(Eventually([&] { return Status().state != "spoiled"; }));
  }
};

TEST_P(RefusedPodsTest, AWrongTemplateIsAConditionThatNamesTheFieldAndIsTriedOnceForEachChange) {
  StartWith({.code = kube::ErrorCode::kInvalid,
             .http_status = 400,
             .message = "strict decoding error: unknown field "
                        "\"spec.containers[0].imagePullPolcy\""});
  ASSERT_TRUE(Eventually([&] { return CreatedIs(false, "InvalidPodTemplate"); }));
  const auto status = Status();
  EXPECT_THAT(status.Find("Created")->message, HasSubstr("spec.containers[0].imagePullPolcy"));
  EXPECT_THAT(status.Find("Created")->message, HasSubstr("spec.worker.template"));
  EXPECT_EQ(status.state, "Invalid");
  EXPECT_EQ(door_->pod_creates(), 1) << "the other pods have the same template";
  // Looking again, for whatever reason, is no new try.
  for (int i = 0; i < 5; ++i) LookAgain();
  door_->RefusePods(std::nullopt);
  LookAgain();
  EXPECT_EQ(Status().state, "Invalid");
  EXPECT_TRUE(Pods().empty());
  EXPECT_EQ(door_->pod_creates(), 1);
  // A change of the job is.
  Change({{"worker", {{"replicas", 2}}}});
  ASSERT_TRUE(Eventually([&] { return Pods().size() == 2 && CreatedIs(true, "Accepted"); }));
  EXPECT_NE(Status().state, "Invalid");
}

TEST_P(RefusedPodsTest, PodsThatAreForbiddenAreTriedAgainAndMadeWhenTheyMayBe) {
  StartWith({.code = kube::ErrorCode::kForbidden,
             .http_status = 403,
             .message = "exceeded quota: gpus, requested: nvidia.com/gpu=1"});
  ASSERT_TRUE(Eventually([&] { return CreatedIs(false, "PodsForbidden"); }));
  EXPECT_THAT(Status().Find("Created")->message, HasSubstr("exceeded quota: gpus"));
  EXPECT_TRUE(Eventually([&] { return door_->pod_creates() > 2; }));
  door_->RefusePods(std::nullopt);
  ASSERT_TRUE(Eventually([&] { return Pods().size() == 3 && CreatedIs(true, "Accepted"); }));
}

TEST_P(RefusedPodsTest, AnApiServerThatIsAwayIsNobodysFault) {
  StartWith({.code = kube::ErrorCode::kUnavailable, .message = "no connection"});
  EXPECT_TRUE(Eventually([&] { return door_->pod_creates() > 2; }));
  EXPECT_TRUE(Eventually([&] { return CreatedIs(true, "Accepted"); }));
  door_->RefusePods(std::nullopt);
  ASSERT_TRUE(Eventually([&] { return Pods().size() == 3; }));
}

RM_ON_EVERY_SERVER(RefusedPodsTest);

TEST(CreationProblemsTest, AWrongTemplateIsTriedAgainAfterAWhile) {
  CreationProblems problems;
  api::HorovodJob job;
  job.uid = "u";
  job.generation = 4;
  const auto now = CreationProblems::Clock::now();
  EXPECT_TRUE(problems.Failed(job, {.code = kube::ErrorCode::kInvalid, .message = "no"}, now));
  EXPECT_EQ(problems.Pause(job, now), CreationProblems::kRetry);
  EXPECT_EQ(problems.Pause(job, now + CreationProblems::kRetry).count(), 0);
  job.generation = 5;
  EXPECT_EQ(problems.Pause(job, now).count(), 0) << "it was changed";
  EXPECT_FALSE(problems.Failed(job, {.code = kube::ErrorCode::kUnavailable}, now));
}

}  // namespace
}  // namespace ringmaster::controllers
