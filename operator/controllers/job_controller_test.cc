#include "operator/controllers/job_controller.h"

#include "common/tls/certificate.h"
#include "operator/api/labels.h"
#include "operator/controllers/testing/job_controller_fixture.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using ::testing::HasSubstr;
using testing::JobControllerTest;

TEST_P(JobControllerTest, ANewJobComesToTrain) {
  Apply(4);
  ASSERT_TRUE(TrainsAs({0, 1, 2, 3}));
  const api::Status status = Status();
  EXPECT_TRUE(status.Is("Running"));
  EXPECT_TRUE(Eventually([&] { return Status().Is("Scheduled"); }));
  EXPECT_EQ(status.world_size, 4);
  const auto record = api_->Get(kube::ConfigMaps(), ns_, "digits-record");
  ASSERT_TRUE(record);
  EXPECT_EQ((*record)["metadata"]["ownerReferences"][0]["name"], "digits");
}

TEST_P(JobControllerTest, ScalesUpAndDown) {
  Apply(3);
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
  Change({{"worker", {{"replicas", 5}}}});
  ASSERT_TRUE(TrainsAs({0, 1, 2, 3, 4}));
  Change({{"worker", {{"replicas", 2}}}});
  ASSERT_TRUE(TrainsAs({0, 1}));
  EXPECT_TRUE(pods_->WasTold("digits-worker-0", "Drain")) << "the coordinator";
  EXPECT_TRUE(pods_->WasTold("digits-worker-4", "Drain")) << "the pod itself";
}

TEST_P(JobControllerTest, APodThatFailsIsReplaced) {
  Apply(3);
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
  pods_->EndPod("digits-worker-1", 137);
  ASSERT_TRUE(TrainsAs({0, 2, 3}));
  EXPECT_EQ(Status().pods_replaced, 1);
  EXPECT_EQ(Status().faults, 0);
}

TEST_P(JobControllerTest, APodThatIsDeletedIsReplaced) {
  Apply(3);
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
  ASSERT_TRUE(api_->Delete(kube::Pods(), ns_, "digits-worker-0", {}));
  ASSERT_TRUE(Eventually([&] { return Pods() == Names({1, 2, 3}) || Pods() == Names({0, 1, 2}); }));
  ASSERT_TRUE(Eventually([&] { return Status().world_size == 3 && Status().state == "Running"; }));
}

TEST_P(JobControllerTest, AnAnnotatedPodIsDrainedAndReplaced) {
  Apply(3);
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
  PatchPod("digits-worker-2", {{"annotations", {{api::kDrainAnnotation, "try"}}}});
  ASSERT_TRUE(TrainsAs({0, 1, 3}));
  EXPECT_TRUE(pods_->WasTold("digits-worker-2", "Drain"));
}

TEST_P(JobControllerTest, SuspendsAndResumesInANewLineage) {
  Apply(2);
  ASSERT_TRUE(TrainsAs({0, 1}));
  Change({{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(Eventually([&] { return Pods().empty() && Status().state == "Suspended"; }));
  Change({{"runPolicy", {{"suspend", false}}}});
  // The new pods may have other indexes: a pod that is still in the cache keeps its name.
  ASSERT_TRUE(Eventually([&] {
    const api::Status status = Status();
    return Pods().size() == 2 && pods_->Members() == Pods() && status.state == "Running" &&
           status.epoch == pods_->epoch() && status.ring.size() == 2;
  }));
  EXPECT_EQ(membership::EpochLineage(Status().epoch), 2u);
}

TEST_P(JobControllerTest, AFinishedJobSucceeds) {
  Apply(2);
  ASSERT_TRUE(TrainsAs({0, 1}));
  pods_->FinishJob();
  ASSERT_TRUE(Eventually([&] { return Status().Is("Succeeded"); }));
  EXPECT_EQ(Status().worker.succeeded, 2);
  EXPECT_EQ(Status().state, "Succeeded");
}

TEST_P(JobControllerTest, AScriptThatExitsWithOneFailsTheJob) {
  Apply(2);
  ASSERT_TRUE(TrainsAs({0, 1}));
  pods_->EndPod("digits-worker-1", 1);
  ASSERT_TRUE(Eventually([&] { return Status().Is("Failed") && Pods() == Names({1}); }))
      << "the running pod is removed, the failed one stays to be looked at";
}

TEST_P(JobControllerTest, AnOperatorThatStartsAnewDisturbsNothingAndGoesOn) {
  Apply(3);
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
  const std::uint64_t before = pods_->epoch();
  RestartOperator();
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
  EXPECT_EQ(pods_->epoch(), before);
  Change({{"worker", {{"replicas", 4}}}});
  ASSERT_TRUE(TrainsAs({0, 1, 2, 3}));
}

TEST_P(JobControllerTest, AnOperatorThatDiedInTheMiddleOfADrainEndsIt) {
  Apply(3);
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
  controller_->Stop();
  PatchPod("digits-worker-1",
           {{"annotations",
             {{api::kDrainAnnotation, "try"},
              {api::kDrainSinceAnnotation, api::FormatTime(std::chrono::system_clock::now())}}}});
  RestartOperator();
  ASSERT_TRUE(TrainsAs({0, 2, 3}));
}

TEST_P(JobControllerTest, WorkersRestartedInPlaceAreCountedOnce) {
  Apply(2);
  ASSERT_TRUE(TrainsAs({0, 1}));
  pods_->RestartWorker("digits-worker-1", 139);
  pods_->RestartWorker("digits-worker-1", 137);
  ASSERT_TRUE(Eventually([&] { return Status().worker_restarts == 2; }));
  EXPECT_EQ(Status().faults, 1) << "a crash is the application's fault, a kill is not";
}

TEST_P(JobControllerTest, AJobThatMakesNoSenseIsRefusedByCondition) {
  // An API server with the schema of another version may allow what the parser refuses.
  door_->SpoilJobs({{"spec", {{"worker", {{"template", {{"spec", {{"nodeSelector", 3}}}}}}}}}});
  Apply(2);
  ASSERT_TRUE(Eventually([&] { return Status().state == "Invalid"; }));
  const auto status = Status();
  ASSERT_NE(status.Find("Created"), nullptr);
  EXPECT_THAT(status.Find("Created")->message,
              HasSubstr("spec.worker.template.spec.nodeSelector: 3 "));
  EXPECT_TRUE(Pods().empty());
}

TEST_P(JobControllerTest, EventsTellTheStory) {
  Apply(2);
  ASSERT_TRUE(TrainsAs({0, 1}));
  pods_->EndPod("digits-worker-1", 137);
  ASSERT_TRUE(TrainsAs({0, 2}));
  ASSERT_TRUE(
      Eventually([&] { return Events("PodFailed").size() == 1 && Events("PodLost").size() == 1; }));
  EXPECT_TRUE(Eventually([&] { return HasEvent("PodCreated"); }));
}

class JobSecretTest : public JobControllerTest {
 protected:
  void SetUp() override {
    options_.child_objects.emplace();
    options_.child_objects->authority =
        *tls::MakeAuthority(std::chrono::system_clock::now(), std::chrono::hours(24));
    ASSERT_NO_FATAL_FAILURE(JobControllerTest::SetUp());
  }
};

// The garbage collector has not come to it yet.
TEST_P(JobSecretTest, NoPodIsMadeWhileTheSecretIsOfAnEarlierJob) {
  ASSERT_TRUE(api_->Create(kube::Secrets(), ns_,
                           {{"apiVersion", "v1"},
                            {"kind", "Secret"},
                            {"metadata", {{"name", "digits-tls"}}},
                            {"data", Json::object()}}));
  Apply(2);
  ASSERT_TRUE(Eventually([&] { return HasEvent("FailedObject"); }));
  EXPECT_TRUE(Pods().empty());
  ASSERT_TRUE(api_->Delete(kube::Secrets(), ns_, "digits-tls", {}));
  EXPECT_TRUE(TrainsAs({0, 1}));
}

RM_ON_EVERY_SERVER(JobControllerTest);
RM_ON_EVERY_SERVER(JobSecretTest);

}  // namespace
}  // namespace ringmaster::controllers
