// Pods that the API server refuses: the job's condition, and how often creation is tried.
#include "operator/controllers/creation_problems.h"

#include "operator/controllers/testing/controller_fixture.h"

namespace ringmaster::controllers {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class RefusedPodsTest : public testing::ControllerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ControllerTest::SetUp());
    options_.queue.first_backoff = std::chrono::milliseconds(1);
    options_.queue.max_backoff = std::chrono::milliseconds(20);
  }
  void RefusePods(std::optional<kube::Error> error) {
    door_->Refuse(kube::Pods(), std::move(error));
  }
  // A job of three pods that are refused.
  void StartWith(std::optional<kube::Error> refusal) {
    RefusePods(std::move(refusal));
    Apply(3);
    ASSERT_NO_FATAL_FAILURE(StartController());
  }
  bool CreatedIs(bool value, const std::string& reason) {
    const auto status = Status();
    const api::Condition* created = status.Find("Created");
    return created != nullptr && created->status == value && created->reason == reason;
  }
  // The condition begins so, and the event has the same words.
  void ExpectSameText(const std::string& beginning) {
    const std::string text = Status().Find("Created")->message;
    EXPECT_THAT(text, StartsWith(beginning));
    ASSERT_TRUE(Eventually([&] { return HasEvent("FailedCreate"); }));
    for (const kube::Json& event : Events("FailedCreate")) EXPECT_EQ(event.value("note", ""), text);
  }
  // Makes the controller reconcile the job again, and waits until it has.
  void LookAgain() {
    const auto spoiled =
        api_->Patch(kube::HorovodJobs(), ns_, "digits", {{"status", {{"state", "spoiled"}}}},
                    {.subresource = "status"});
    ASSERT_TRUE(spoiled) << spoiled.error().message;
    ASSERT_TRUE(Eventually([&] { return Status().state != "spoiled"; }));
  }
};

TEST_P(RefusedPodsTest, AWrongTemplateIsAConditionThatNamesTheFieldAndIsTriedOnceForEachChange) {
  StartWith(kube::Error{.code = kube::ErrorCode::kInvalid,
                        .http_status = 400,
                        .message = "strict decoding error: unknown field "
                                   "\"spec.containers[0].imagePullPolcy\""});
  ASSERT_TRUE(Eventually([&] { return CreatedIs(false, "InvalidPodTemplate"); }));
  const auto status = Status();
  EXPECT_THAT(status.Find("Created")->message, HasSubstr("spec.containers[0].imagePullPolcy"));
  EXPECT_THAT(status.Find("Created")->message, HasSubstr("spec.worker.template"));
  EXPECT_EQ(status.state, "Invalid");
  EXPECT_EQ(door_->pod_creates(), 1) << "the other pods have the same template";
  // A reconcile for another reason is no new try.
  for (int i = 0; i < 5; ++i) LookAgain();
  RefusePods(std::nullopt);
  LookAgain();
  EXPECT_EQ(Status().state, "Invalid");
  EXPECT_TRUE(Pods().empty());
  EXPECT_EQ(door_->pod_creates(), 1);
  // A change of the job is a new try.
  Change({{"worker", {{"replicas", 2}}}});
  ASSERT_TRUE(Eventually([&] { return Pods().size() == 2 && CreatedIs(true, "Accepted"); }));
  EXPECT_NE(Status().state, "Invalid");
}

TEST_P(RefusedPodsTest, PodsThatAreForbiddenAreTriedAgainAndMadeWhenTheyMayBe) {
  StartWith(kube::Error{.code = kube::ErrorCode::kForbidden,
                        .http_status = 403,
                        .message = "exceeded quota: gpus, requested: nvidia.com/gpu=1"});
  ASSERT_TRUE(Eventually([&] { return CreatedIs(false, "PodsForbidden"); }));
  ExpectSameText("the API server forbids the job's pods: exceeded quota: gpus");
  EXPECT_TRUE(Eventually([&] { return door_->pod_creates() > 2; }));
  RefusePods(std::nullopt);
  ASSERT_TRUE(Eventually([&] { return Pods().size() == 3 && CreatedIs(true, "Accepted"); }));
}

TEST_P(RefusedPodsTest, ThePodOfAnEarlierJobIsWaitedForWithoutComplaint) {
  const kube::Json earlier = kube::Json::parse(R"({"metadata": {"name": "digits-worker-0",
      "finalizers": ["ringmaster.dev/proof-of-death"]},
      "spec": {"containers": [{"name": "worker", "image": "digits"}]}})");
  ASSERT_TRUE(api_->Create(kube::Pods(), ns_, earlier));
  ASSERT_TRUE(api_->Delete(kube::Pods(), ns_, "digits-worker-0", {}));
  StartWith(std::nullopt);
  ASSERT_TRUE(Eventually([&] { return CreatedIs(false, "PodNameTaken"); }));
  EXPECT_THAT(Status().Find("Created")->message, HasSubstr("digits-worker-0 of an earlier job"));
  ASSERT_TRUE(Eventually([&] { return door_->pod_creates() > 1; }));
  ASSERT_TRUE(api_->Patch(kube::Pods(), ns_, "digits-worker-0",
                          {{"metadata", {{"finalizers", nullptr}}}}, {}));
  ASSERT_TRUE(Eventually([&] { return Pods().size() == 3 && CreatedIs(true, "Accepted"); }));
  EXPECT_FALSE(HasEvent("FailedCreate"));
}

TEST_P(RefusedPodsTest, AnApiServerThatIsAwayIsNobodysFault) {
  StartWith(kube::Error{.code = kube::ErrorCode::kUnavailable, .message = "no connection"});
  EXPECT_TRUE(Eventually([&] { return door_->pod_creates() > 2; }));
  EXPECT_TRUE(Eventually([&] { return CreatedIs(true, "Accepted"); }));
  RefusePods(std::nullopt);
  ASSERT_TRUE(Eventually([&] { return Pods().size() == 3; }));
}

TEST_P(RefusedPodsTest, AnAdmissionThatRefusesIsNoWrongTemplateWhateverItsStatusCode) {
  StartWith(kube::Error{.code = kube::ErrorCode::kInvalid,
                        .http_status = 422,
                        .message = "pods \"digits-worker-0\" is forbidden: "
                                   "ValidatingAdmissionPolicy 'p' with binding 'b' denied "
                                   "request: no cost center"});
  ASSERT_TRUE(Eventually([&] { return CreatedIs(false, "PodsForbidden"); }));
  EXPECT_THAT(Status().Find("Created")->message, HasSubstr("no cost center"));
  EXPECT_EQ(Status().state, "Pending");
  RefusePods(std::nullopt);
  ASSERT_TRUE(Eventually([&] { return Pods().size() == 3 && CreatedIs(true, "Accepted"); }));
}

TEST_P(RefusedPodsTest, AWebhookThatCantBeAskedIsACondition) {
  StartWith(kube::Error{.code = kube::ErrorCode::kUnavailable,
                        .http_status = 500,
                        .message = "failed calling webhook \"pods.example\": no endpoints"});
  ASSERT_TRUE(Eventually([&] { return CreatedIs(false, "PodsFailed"); }));
  ExpectSameText("an admission webhook that is asked about the job's pods fails: failed calling");
  RefusePods(std::nullopt);
  ASSERT_TRUE(Eventually([&] { return Pods().size() == 3 && CreatedIs(true, "Accepted"); }));
}

RM_ON_EVERY_SERVER(RefusedPodsTest);

class CreationProblemsTest : public ::testing::Test {
 protected:
  CreationProblemsTest() {
    job_.uid = "u";
    job_.generation = 4;
  }
  api::Condition Shown() {
    api::Status status;
    problems_.Show(job_, false, "2026-01-31T12:00:00Z", &status);
    return *status.Find("Created");
  }
  api::HorovodJob job_;
  CreationProblems problems_;
  const CreationProblems::Clock::time_point now_ = CreationProblems::Clock::now();
};

TEST_F(CreationProblemsTest, AWrongTemplateIsTriedAgainAfterAWhile) {
  problems_.Failed(job_, Needed::kPods, {.code = kube::ErrorCode::kInvalid, .message = "no"}, now_);
  EXPECT_EQ(problems_.Pause(job_, Needed::kPods, now_), CreationProblems::kRetry);
  EXPECT_EQ(problems_.Pause(job_, Needed::kPods, now_ + CreationProblems::kRetry).count(), 0);
  job_.generation = 5;
  EXPECT_EQ(problems_.Pause(job_, Needed::kPods, now_).count(), 0) << "it was changed";
  problems_.Failed(job_, Needed::kPods, {.code = kube::ErrorCode::kUnavailable}, now_);
  EXPECT_EQ(problems_.Pause(job_, Needed::kPods, now_).count(), 0) << "it is only away";
}

TEST_F(CreationProblemsTest, WhatIsForbiddenIsAskedForMoreAndMoreSlowlyUntilItWorks) {
  const kube::Error quota{.code = kube::ErrorCode::kForbidden, .message = "exceeded quota"};
  auto now = now_;
  std::vector<std::int64_t> pauses;
  for (int i = 0; i < 12; ++i) {
    problems_.Failed(job_, Needed::kRecord, quota, now);
    pauses.push_back(problems_.Pause(job_, Needed::kRecord, now).count());
    now += std::chrono::milliseconds(pauses.back());
    EXPECT_EQ(problems_.Pause(job_, Needed::kRecord, now).count(), 0);
  }
  EXPECT_EQ(pauses[0], 50);
  EXPECT_EQ(pauses[1], 100);
  EXPECT_EQ(pauses.back(), 30'000);
  EXPECT_EQ(problems_.Pause(job_, Needed::kPods, now_).count(), 0) << "that is another thing";
  problems_.Worked(job_, Needed::kRecord);
  problems_.Failed(job_, Needed::kRecord, quota, now);
  EXPECT_EQ(problems_.Pause(job_, Needed::kRecord, now).count(), 50);
}

TEST_F(CreationProblemsTest, ARefusedRecordIsShownUnlessItIsOverInAMoment) {
  const kube::Error quota{.code = kube::ErrorCode::kForbidden, .message = "exceeded quota: cm"};
  for (int i = 0; i < 4; ++i) problems_.Failed(job_, Needed::kRecord, quota, now_);
  EXPECT_TRUE(Shown().status) << "what a former job of this name has left goes as fast";
  problems_.Failed(job_, Needed::kRecord, quota, now_);
  EXPECT_FALSE(Shown().status);
  EXPECT_EQ(Shown().reason, "RecordForbidden");
  EXPECT_THAT(Shown().message, HasSubstr("exceeded quota: cm"));
  problems_.Failed(job_, Needed::kPods, {.code = kube::ErrorCode::kForbidden}, now_);
  EXPECT_EQ(Shown().reason, "PodsForbidden") << "they come first";
  problems_.Forget("u");
  EXPECT_TRUE(Shown().status);
}

TEST_F(CreationProblemsTest, ANamespaceThatGoesIsNoQuota) {
  const kube::Error goes{.code = kube::ErrorCode::kForbidden,
                         .message =
                             "unable to create new content in namespace team because it is "
                             "being terminated"};
  EXPECT_TRUE(NamespaceGoes(goes));
  problems_.Failed(job_, Needed::kPods, goes, now_);
  EXPECT_EQ(Shown().reason, "NamespaceTerminating");
}

TEST_F(CreationProblemsTest, TheTextSaysWhatCantBeMadeAndWhy) {
  const kube::Error quota = {.code = kube::ErrorCode::kForbidden, .message = "quota"};
  problems_.Failed(job_, Needed::kPods, quota, now_);
  EXPECT_EQ(Shown().message, ProblemText(Needed::kPods, quota));
  EXPECT_EQ(ProblemText(Needed::kPods, quota), "the API server forbids the job's pods: quota");
  EXPECT_EQ(ProblemText(Needed::kRecord, {.code = kube::ErrorCode::kConflict, .message = "late"}),
            "a request for the job's record (a ConfigMap) failed: late");
}

TEST_F(CreationProblemsTest, AreShownFromWhenTheyBeganUntilTheyAreOver) {
  api::Status status;
  status.state = "Pending";
  status.conditions = {{"Created", true, "Accepted", "so", "earlier", 1}};
  problems_.Show(job_, false, "now", &status);
  EXPECT_EQ(status.conditions[0].message, "so") << "nothing is wrong";
  problems_.Failed(job_, Needed::kPods, {.code = kube::ErrorCode::kForbidden, .message = "quota"},
                   {});
  problems_.Show(job_, false, "now", &status);
  EXPECT_FALSE(status.conditions[0].status);
  EXPECT_EQ(status.conditions[0].last_transition_time, "now");
  EXPECT_EQ(status.state, "Pending") << "a quota says nothing against the job";
  problems_.Failed(job_, Needed::kPods, {.code = kube::ErrorCode::kInvalid, .message = "no"}, {});
  problems_.Show(job_, true, "later", &status);
  EXPECT_EQ(status.conditions[0].last_transition_time, "now") << "it was false before";
  EXPECT_EQ(status.state, "Pending") << "it has pods of an earlier template";
  problems_.Show(job_, false, "later", &status);
  EXPECT_EQ(status.state, "Invalid");
  problems_.Worked(job_, Needed::kPods);
  problems_.Show(job_, true, "at last", &status);
  EXPECT_TRUE(status.conditions[0].status);
  EXPECT_EQ(status.conditions[0].last_transition_time, "at last");
}

TEST_F(CreationProblemsTest, AJobThatHasTrainedIsDegradedAndStaysCreated) {
  api::Status status;
  status.epoch = 1;
  status.conditions = {{"Created", true, "Accepted", "so", "earlier", 1}};
  problems_.Show(job_, true, "now", &status);
  EXPECT_EQ(status.Find("Degraded"), nullptr) << "nothing is wrong";
  problems_.Failed(job_, Needed::kPods, {.code = kube::ErrorCode::kForbidden, .message = "quota"},
                   {});
  problems_.Show(job_, true, "now", &status);
  EXPECT_TRUE(status.Is("Created"));
  ASSERT_TRUE(status.Is("Degraded"));
  EXPECT_EQ(status.Find("Degraded")->reason, "PodsForbidden");
  problems_.Worked(job_, Needed::kPods);
  problems_.Show(job_, true, "later", &status);
  EXPECT_FALSE(status.Is("Degraded"));
  EXPECT_EQ(status.Find("Degraded")->last_transition_time, "later");
}

}  // namespace
}  // namespace ringmaster::controllers
