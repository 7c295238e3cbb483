// An API server that refuses: the controller reports it, and does not retry without pauses.
#include "operator/controllers/testing/controller_fixture.h"
#include "operator/controllers/testing/fake_cluster.h"

namespace ringmaster::controllers {
namespace {

using std::chrono::milliseconds;
using support::Until;
using ::testing::HasSubstr;

class JobControllerFaultsTest : public testing::ControllerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ControllerTest::SetUp());
    options_.queue.first_backoff = milliseconds(50);
  }
  api::Condition Created() {
    const auto status = Status();
    const api::Condition* created = status.Find("Created");
    return created == nullptr ? api::Condition{} : *created;
  }
};

TEST_P(JobControllerFaultsTest, RefusedPodsAreTriedAgainMoreAndMoreSlowlyAndLaterMade) {
  ASSERT_NO_FATAL_FAILURE(StartController());
  door_->RefuseCreates(kube::Error{
      .code = kube::ErrorCode::kForbidden, .http_status = 403, .message = "exceeded quota: team"});
  Apply(2);
  ASSERT_TRUE(Until([&] { return door_->pod_creates() >= 2; }));
  (void)Until([] { return false; }, milliseconds(1500));
  // 50, 100, 200, 400, 800 ms: five tries of two pods, and one or two for changes of the job
  // itself.
  EXPECT_LE(door_->pod_creates(), 2 * 8);
  EXPECT_GE(door_->pod_creates(), 4);
  door_->RefuseCreates(std::nullopt);
  EXPECT_TRUE(Eventually([&] { return Pods().size() == 2; }));
}

TEST_P(JobControllerFaultsTest, LookingAtTheJobForOtherReasonsIsNoNewTry) {
  door_->RefuseCreates(kube::Error{
      .code = kube::ErrorCode::kForbidden, .http_status = 403, .message = "exceeded quota: team"});
  ASSERT_NO_FATAL_FAILURE(StartController());
  Apply(2);
  ASSERT_TRUE(Until([&] { return door_->pod_creates() >= 3; }));
  const int before = door_->pod_creates();
  for (int i = 0; i < 40; ++i) {
    const auto touched =
        api_->Patch(kube::HorovodJobs(), ns_, "digits",
                    {{"metadata", {{"annotations", {{"touched", std::to_string(i)}}}}}}, {});
    ASSERT_TRUE(touched) << touched.error().message;
    (void)Until([] { return false; }, milliseconds(10));
  }
  // Forty reconciles, in which the pauses of 200, 400, 800 ms allow a few tries, more on a slow
  // machine.
  EXPECT_LT(door_->pod_creates() - before, 20);
}

TEST_P(JobControllerFaultsTest, TheEventSaysWhyAPodWasRefusedOnceAndCounts) {
  ASSERT_NO_FATAL_FAILURE(StartController());
  door_->Refuse(kube::Pods(), kube::Error{.code = kube::ErrorCode::kForbidden,
                                          .message = "exceeded quota: team"});
  Apply(2);
  ASSERT_TRUE(Until([&] { return door_->pod_creates() >= 6; }));
  ASSERT_TRUE(Until([&] { return HasEvent("FailedCreate"); }));
  const auto failed = Events("FailedCreate");
  EXPECT_LE(failed.size(), 2u) << "at most one for each pod, not one for each try";
  EXPECT_THAT(failed[0].value("note", ""), HasSubstr("exceeded quota: team"));
}

TEST_P(JobControllerFaultsTest, ARecordThatIsRefusedIsSaidAndNotAskedForInALoop) {
  door_->Refuse(kube::ConfigMaps(), kube::Error{.code = kube::ErrorCode::kForbidden,
                                                .http_status = 403,
                                                .message = "exceeded quota: configmaps"});
  ASSERT_NO_FATAL_FAILURE(StartController());
  FakeCluster cluster(api_, ns_, registry_.get(), [&](const std::string& pod) {
    (void)cluster_->Bind(pod, cluster_->NodeName("node-1"));
  });
  Apply(2);
  ASSERT_TRUE(Until([&] { return Created().reason == "RecordForbidden"; }));
  EXPECT_THAT(Created().message, HasSubstr("exceeded quota: configmaps"));
  EXPECT_EQ(Events("FailedRecord").size(), 1u);
  (void)Until([] { return false; }, milliseconds(500));
  EXPECT_LE(door_->record_creates(), 8) << "50, 100, 200, 400, 800 ms";
  door_->Refuse(kube::ConfigMaps(), std::nullopt);
  EXPECT_TRUE(Until([&] { return Created().status && !cluster.Members().empty(); }));
  controller_->Stop();  // before the API and the sidecars that it uses
}

TEST_P(JobControllerFaultsTest, ARecordThatIsNoneIsSaid) {
  ASSERT_TRUE(api_->Create(kube::ConfigMaps(), ns_,
                           {{"metadata", {{"name", "digits-record"}}}, {"data", {{"a", "b"}}}}));
  ASSERT_NO_FATAL_FAILURE(StartController());
  Apply(2);
  ASSERT_TRUE(Until([&] { return Created().reason == "RecordUnusable"; }));
  EXPECT_THAT(Created().message, HasSubstr("configmap " + ns_ + "/digits-record"));
  ASSERT_TRUE(api_->Delete(kube::ConfigMaps(), ns_, "digits-record", {}));
  EXPECT_TRUE(Until([&] { return Created().status && door_->pod_creates() == 2; }));
}

TEST_P(JobControllerFaultsTest, JobsOfEveryNamespaceThatIsWatchedGetPodsAndNoOthers) {
  const std::string watched = ns_ + "-watched", other = ns_ + "-other";
  for (const std::string& ns : {watched, other}) {
    ASSERT_TRUE(api_->Create(kube::Namespaces(), "", {{"metadata", {{"name", ns}}}}));
  }
  options_.watch_namespaces = {watched, ns_};
  ASSERT_NO_FATAL_FAILURE(StartController());
  const auto pods_in = [this](const std::string& ns) {
    const auto pods = api_->ListAll(kube::Pods(), ns, {});
    return pods ? pods->items.size() : 0;
  };
  for (const std::string& ns : {other, watched, ns_}) {
    ASSERT_TRUE(api_->Create(kube::HorovodJobs(), ns, api::testing::JobObject("digits", 2, 2)));
  }
  EXPECT_TRUE(Until([&] { return pods_in(watched) == 2 && pods_in(ns_) == 2; }));
  EXPECT_EQ(controller_->Jobs().size(), 2u);
  EXPECT_TRUE(Until([&] { return controller_->state().queue.depth == 0; }));
  EXPECT_EQ(pods_in(other), 0u);
}

TEST_P(JobControllerFaultsTest, AJobThatGoesWithItsNamespaceLeavesNoCallsBehind) {
  const std::string team = ns_ + "-team";
  ASSERT_TRUE(api_->Create(kube::Namespaces(), "", {{"metadata", {{"name", team}}}}));
  options_.watch_namespaces = {team};
  ASSERT_NO_FATAL_FAILURE(StartController());
  Apply(2);
  ASSERT_TRUE(Until([&] { return door_->pod_creates() >= 2; }));
  ASSERT_TRUE(api_->Delete(kube::Namespaces(), "", team, {}));
  ASSERT_TRUE(Until([&] { return controller_->Jobs().empty(); }));
  // Keys in the queue find no job and are dropped.
  ASSERT_TRUE(Until([&] { return controller_->state().queue.depth == 0; }));
  EXPECT_TRUE(Until([&] {
    const int before = door_->writes();
    (void)Until([] { return false; }, milliseconds(300));
    return door_->writes() == before;
  }));
  // A namespace may take seconds to disappear, pods first; each refusal makes the next pause
  // longer.
  EXPECT_LE(door_->pod_creates(), 2 * 10) << "made again and again while the namespace went";
}

RM_ON_EVERY_SERVER(JobControllerFaultsTest);

}  // namespace
}  // namespace ringmaster::controllers
