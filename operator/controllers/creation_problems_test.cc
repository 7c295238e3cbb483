// Pods that the API server refuses: what the job says of it, and how often it is tried.
#include "operator/controllers/creation_problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "operator/controllers/job_controller.h"
#include "operator/local/in_memory_api.h"
#include "operator/local/store.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using testing::HasSubstr;

// Refuses pods while `refusal` is set.
class RefusingApi final : public local::InMemoryApi {
 public:
  using InMemoryApi::InMemoryApi;
  kube::Result<Json> CreateWith(const kube::Resource& resource, const std::string& ns,
                                const Json& object, const kube::CreateOptions& options) override {
    if (resource != kube::Pods()) return InMemoryApi::CreateWith(resource, ns, object, options);
    ++tries;
    {
      const std::lock_guard lock(mu_);
      if (refusal_) return tl::unexpected(*refusal_);
    }
    return InMemoryApi::CreateWith(resource, ns, object, options);
  }
  void Refuse(std::optional<kube::Error> error) {
    const std::lock_guard lock(mu_);
    refusal_ = std::move(error);
  }
  std::atomic<int> tries{0};

 private:
  std::mutex mu_;
  std::optional<kube::Error> refusal_;  // guarded by mu_
};

class RefusedPodsTest : public testing::Test {
 protected:
  void SetUp() override {
    JobControllerOptions options;
    options.queue.first_backoff = std::chrono::milliseconds(1);
    options.queue.max_backoff = std::chrono::milliseconds(20);
    controller_ = std::make_unique<JobController>(api_, &hub_, &records_, options);
  }
  void TearDown() override { controller_->Stop(); }

  void Start() {
    Json job = Json::parse(R"({
      "apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob",
      "metadata": {"name": "digits", "namespace": "default"},
      "spec": {"elasticPolicy": {"minReplicas": 2}, "worker": {"replicas": 3, "template": {"spec":
        {"containers": [{"name": "worker", "image": "digits", "command": ["train"]}]}}}}})");
    ASSERT_TRUE(api_->Create(kube::HorovodJobs(), "default", job));
    const auto started = controller_->Start();
    ASSERT_TRUE(started) << started.error().message;
  }
  api::Status Status() {
    const auto job = api_->Get(kube::HorovodJobs(), "default", "digits");
    return job ? api::StatusFromJson(job->value("status", Json::object())) : api::Status{};
  }
  testing::AssertionResult Eventually(const std::function<bool()>& so) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!so()) {
      if (std::chrono::steady_clock::now() > end) {
        return testing::AssertionFailure() << api::StatusToJson(Status()).dump(1);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return testing::AssertionSuccess();
  }
  bool CreatedIs(bool value, const std::string& reason) {
    const auto status = Status();
    const api::Condition* created = status.Find("Created");
    return created != nullptr && created->status == value && created->reason == reason;
  }
  std::size_t Pods() { return api_->ListAll(kube::Pods(), "default", {})->items.size(); }
  // Has the controller look at the job again, and waits until it has.
  void LookAgain() {
    const auto spoiled =
        api_->Patch(kube::HorovodJobs(), "default", "digits", {{"status", {{"state", "spoiled"}}}},
                    {.subresource = "status"});
    ASSERT_TRUE(spoiled) << spoiled.error().message;
    ASSERT_TRUE(Eventually([&] { return Status().state != "spoiled"; }));
  }

  const std::shared_ptr<RefusingApi> api_ =
      std::make_shared<RefusingApi>(std::make_shared<local::Store>(local::StoreOptions{}));
  SidecarHub hub_;
  RecordStore records_{api_};
  std::unique_ptr<JobController> controller_;
};

TEST_F(RefusedPodsTest, AWrongTemplateIsAConditionThatNamesTheFieldAndIsTriedOnceForEachChange) {
  api_->Refuse(kube::Error{.code = kube::ErrorCode::kInvalid,
                           .http_status = 400,
                           .message = "strict decoding error: unknown field "
                                      "\"spec.containers[0].imagePullPolcy\""});
  Start();
  ASSERT_TRUE(Eventually([&] { return CreatedIs(false, "InvalidPodTemplate"); }));
  const auto status = Status();
  EXPECT_THAT(status.Find("Created")->message, HasSubstr("spec.containers[0].imagePullPolcy"));
  EXPECT_THAT(status.Find("Created")->message, HasSubstr("spec.worker.template"));
  EXPECT_EQ(status.state, "Invalid");
  EXPECT_EQ(api_->tries.load(), 1) << "the other pods have the same template";
  // Looking again, for whatever reason, is no new try.
  for (int i = 0; i < 5; ++i) LookAgain();
  api_->Refuse(std::nullopt);
  LookAgain();
  EXPECT_EQ(Status().state, "Invalid");
  EXPECT_EQ(Pods(), 0u);
  EXPECT_EQ(api_->tries.load(), 1);
  // A change of the job is.
  ASSERT_TRUE(api_->Patch(kube::HorovodJobs(), "default", "digits",
                          {{"spec", {{"worker", {{"replicas", 2}}}}}}, {}));
  ASSERT_TRUE(Eventually([&] { return Pods() == 2 && CreatedIs(true, "Accepted"); }));
  EXPECT_NE(Status().state, "Invalid");
}

TEST_F(RefusedPodsTest, PodsThatAreForbiddenAreTriedAgainAndMadeWhenTheyMayBe) {
  api_->Refuse(kube::Error{.code = kube::ErrorCode::kForbidden,
                           .http_status = 403,
                           .message = "exceeded quota: gpus, requested: nvidia.com/gpu=1"});
  Start();
  ASSERT_TRUE(Eventually([&] { return CreatedIs(false, "PodsForbidden"); }));
  EXPECT_THAT(Status().Find("Created")->message, HasSubstr("exceeded quota: gpus"));
  EXPECT_TRUE(Eventually([&] { return api_->tries > 2; }));
  api_->Refuse(std::nullopt);
  ASSERT_TRUE(Eventually([&] { return Pods() == 3 && CreatedIs(true, "Accepted"); }));
}

TEST_F(RefusedPodsTest, ThePodOfAnEarlierJobIsWaitedForWithoutComplaint) {
  const Json earlier = Json::parse(R"({"metadata": {"name": "digits-worker-0",
      "finalizers": ["ringmaster.dev/proof-of-death"]},
      "spec": {"containers": [{"name": "worker", "image": "digits"}]}})");
  ASSERT_TRUE(api_->Create(kube::Pods(), "default", earlier));
  ASSERT_TRUE(api_->Delete(kube::Pods(), "default", "digits-worker-0", {}));
  Start();
  ASSERT_TRUE(Eventually([&] { return CreatedIs(false, "PodNameTaken"); }));
  EXPECT_THAT(Status().Find("Created")->message, HasSubstr("digits-worker-0 of an earlier job"));
  ASSERT_TRUE(Eventually([&] { return api_->tries > 1; }));
  ASSERT_TRUE(api_->Patch(kube::Pods(), "default", "digits-worker-0",
                          {{"metadata", {{"finalizers", nullptr}}}}, {}));
  ASSERT_TRUE(Eventually([&] { return Pods() == 3 && CreatedIs(true, "Accepted"); }));
  const auto events = api_->ListAll(kube::Events(), "default", {});
  ASSERT_TRUE(events);
  for (const Json& event : events->items) {
    EXPECT_NE(event.value("reason", ""), "FailedCreate") << event.dump(1);
  }
}

TEST_F(RefusedPodsTest, AnApiServerThatIsAwayIsNobodysFault) {
  api_->Refuse(kube::Error{.code = kube::ErrorCode::kUnavailable, .message = "no connection"});
  Start();
  EXPECT_TRUE(Eventually([&] { return api_->tries > 2; }));
  EXPECT_TRUE(Eventually([&] { return CreatedIs(true, "Accepted"); }));
  api_->Refuse(std::nullopt);
  ASSERT_TRUE(Eventually([&] { return Pods() == 3; }));
}

TEST_F(RefusedPodsTest, AnAdmissionThatRefusesIsNoWrongTemplateWhateverItsStatusCode) {
  api_->Refuse(kube::Error{.code = kube::ErrorCode::kInvalid,
                           .http_status = 422,
                           .message = "pods \"digits-worker-0\" is forbidden: "
                                      "ValidatingAdmissionPolicy 'p' with binding 'b' denied "
                                      "request: no cost center"});
  Start();
  ASSERT_TRUE(Eventually([&] { return CreatedIs(false, "PodsForbidden"); }));
  EXPECT_THAT(Status().Find("Created")->message, HasSubstr("no cost center"));
  EXPECT_EQ(Status().state, "Pending");
  api_->Refuse(std::nullopt);
  ASSERT_TRUE(Eventually([&] { return Pods() == 3 && CreatedIs(true, "Accepted"); }));
}

TEST_F(RefusedPodsTest, AWebhookThatCantBeAskedIsACondition) {
  api_->Refuse(kube::Error{.code = kube::ErrorCode::kUnavailable,
                           .http_status = 500,
                           .message = "failed calling webhook \"pods.example\": no endpoints"});
  Start();
  ASSERT_TRUE(Eventually([&] { return CreatedIs(false, "PodsFailed"); }));
  EXPECT_THAT(Status().Find("Created")->message, HasSubstr("webhook \"pods.example\""));
  api_->Refuse(std::nullopt);
  ASSERT_TRUE(Eventually([&] { return Pods() == 3 && CreatedIs(true, "Accepted"); }));
}

class CreationProblemsTest : public testing::Test {
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
  EXPECT_TRUE(problems_.Failed(job_, Needed::kPods,
                               {.code = kube::ErrorCode::kInvalid, .message = "no"}, now_));
  EXPECT_EQ(problems_.Pause(job_, Needed::kPods, now_), CreationProblems::kRetry);
  EXPECT_EQ(problems_.Pause(job_, Needed::kPods, now_ + CreationProblems::kRetry).count(), 0);
  job_.generation = 5;
  EXPECT_EQ(problems_.Pause(job_, Needed::kPods, now_).count(), 0) << "it was changed";
  EXPECT_FALSE(
      problems_.Failed(job_, Needed::kPods, {.code = kube::ErrorCode::kUnavailable}, now_));
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

}  // namespace
}  // namespace ringmaster::controllers
