#include "operator/controllers/provisioning_requests.h"

#include "operator/controllers/testing/parts_fixture.h"
#include "operator/kube/resources.h"
#include "tests/support/until.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using provisioning::RequestStage;
using support::Until;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The job "digits". The test itself answers for the autoscaler.
class ProvisioningRequestsTest : public testing::PartsTest {
 protected:
  void Begin(bool served = true) {
    ProvisioningOptions options;
    if (served) options.version = kube::ProvisioningRequests();
    requests_ = std::make_unique<ProvisioningRequests>(
        api_, options, std::vector<std::string>(), PodOptions(),
        [this](const std::string& job) { changed_ = job == job_.Key() ? changed_ + 1 : -1; });
    requests_->Start();
    ASSERT_TRUE(Until([&] { return requests_->HasAnswer(); }));
  }
  void TearDown() override {
    if (requests_ != nullptr) requests_->Stop();
  }
  std::optional<provisioning::Requests> Look() {
    snapshot_.job = job_;
    snapshot_.requests = requests_->Look(snapshot_);
    return snapshot_.requests;
  }
  bool Apply(const planner::Decision& decision) {
    return requests_->Apply(snapshot_, decision, {&backoff_, &events_});
  }
  bool Make(int count) {
    EXPECT_TRUE(Look());
    return Apply({.request = provisioning::Wanted{.count = count}});
  }
  std::vector<Json> All(const kube::Resource& resource) {
    const auto all = api_->ListAll(resource, "default", {});
    return all ? all->items : std::vector<Json>();
  }
  std::vector<Json> Requests() { return All(kube::ProvisioningRequests()); }
  std::vector<Json> Templates() { return All(kube::PodTemplates()); }

  std::unique_ptr<ProvisioningRequests> requests_;
  planner::Snapshot snapshot_{.now = std::chrono::system_clock::now()};
  std::atomic<int> changed_ = 0;  // -1: for another job
};

TEST_F(ProvisioningRequestsTest, AreMadeWithATemplateOwnedByTheJobAndReadBack) {
  Begin();
  ASSERT_TRUE(Make(2));
  ASSERT_EQ(Requests().size(), 1u);
  ASSERT_EQ(Templates().size(), 1u);
  for (const Json& object : {Requests()[0], Templates()[0]}) {
    EXPECT_TRUE(IsOwnedBy(object, job_.uid));
  }
  EXPECT_EQ(Requests()[0]["spec"]["podSets"][0]["podTemplateRef"]["name"],
            Templates()[0]["metadata"]["name"]);
  EXPECT_THAT(EventReasons(), Contains("NodesRequested"));
  // At once, also before the watch has brought it.
  ASSERT_EQ(Look()->own.size(), 1u);
  EXPECT_EQ(Look()->own[0].count, 2);
  EXPECT_EQ(Look()->own[0].digest, Look()->digest);
  ASSERT_TRUE(Make(2)) << "the same wish again";
  EXPECT_EQ(Requests().size(), 1u);
}

TEST_F(ProvisioningRequestsTest, WhatTheAutoscalerSaysIsReadAndTheJobIsLookedAt) {
  Begin();
  ASSERT_TRUE(Make(2));
  const std::string name = Requests()[0]["metadata"]["name"];
  changed_ = 0;
  ASSERT_TRUE(api_->Patch(
      kube::ProvisioningRequests(), "default", name,
      {{"status",
        {{"conditions", {{{"type", "Failed"}, {"status", "True"}, {"message", "no gpus"}}}}}}},
      {.subresource = "status"}));
  ASSERT_TRUE(Until([&] { return Look()->own[0].stage == RequestStage::kFailed; }));
  EXPECT_EQ(Look()->own[0].why, "no gpus");
  EXPECT_TRUE(Until([&] { return changed_ > 0; }));
}

TEST_F(ProvisioningRequestsTest, WhatIsDroppedGoesWithItsTemplate) {
  Begin();
  ASSERT_TRUE(Make(2));
  const provisioning::RequestFacts made = Look()->own[0];
  ASSERT_TRUE(Apply({.request_drops = {{made.name, made.uid}}}));
  EXPECT_THAT(Requests(), IsEmpty());
  EXPECT_THAT(Templates(), IsEmpty());
  const auto own = Look()->own;
  EXPECT_TRUE(own.empty() || own[0].deleting) << "it counts no more, however late the watch is";
}

TEST_F(ProvisioningRequestsTest, WhatCanNotBeDeletedIsTriedAgain) {
  Begin();
  ASSERT_TRUE(Make(2));
  const provisioning::RequestFacts made = Look()->own[0];
  api_->refused_verb = "delete";
  EXPECT_FALSE(Apply({.request_drops = {{made.name, made.uid}}}));
  EXPECT_EQ(Requests().size(), 1u) << "without it nobody would remember the template";
  EXPECT_FALSE(Look()->own[0].deleting);
}

TEST_F(ProvisioningRequestsTest, ARefusalIsAnEventAndIsNotRepeatedAtOnce) {
  Begin();
  api_->refused_verb = "create";
  ASSERT_TRUE(Make(2));
  ASSERT_TRUE(Until([&] { return api_->refusals == 2; })) << "of the template, and of the event";
  ASSERT_TRUE(Make(2));
  EXPECT_EQ(api_->refusals, 2) << "it is too early";
  EXPECT_TRUE(backoff_.IsPaused(job_, Needed::kRequests));
  EXPECT_FALSE(backoff_.PodsArePaused(job_)) << "pods are another matter";
  EXPECT_THAT(Requests(), IsEmpty());
}

TEST_F(ProvisioningRequestsTest, TheTemplateOfARequestOfWhichNoAnswerCameStays) {
  Begin();
  api_->unanswered = "provisioningrequests";
  Make(2);
  EXPECT_EQ(Requests().size(), 1u);
  EXPECT_EQ(Templates().size(), 1u);
}

TEST_F(ProvisioningRequestsTest, AreNotUsedWhereTheyAreNotServed) {
  Begin(false);
  const int lists = api_->lists;
  EXPECT_FALSE(Look());
  EXPECT_TRUE(Apply({}));
  EXPECT_EQ(api_->lists, lists) << "nobody asks again";
}

TEST_F(ProvisioningRequestsTest, AreNotMadeForAJobThatBringsItsOwn) {
  Begin();
  job_.spec.worker.pod_template["metadata"]["annotations"][provisioning::kConsumeAnnotation] = "x";
  EXPECT_FALSE(Look());
}

TEST_F(ProvisioningRequestsTest, AWrongClassIsSaid) {
  Begin();
  Json& annotations = job_.spec.worker.pod_template["metadata"]["annotations"];
  annotations[provisioning::kClassAnnotation] = "Any Class";
  EXPECT_THAT(Look()->problem, HasSubstr("\"Any Class\""));
  annotations[provisioning::kClassAnnotation] = "check-capacity.autoscaling.x-k8s.io";
  EXPECT_THAT(Look()->problem, IsEmpty());
  ASSERT_TRUE(Make(1));
  EXPECT_EQ(Requests()[0]["spec"]["provisioningClassName"], "check-capacity.autoscaling.x-k8s.io");
}

TEST_F(ProvisioningRequestsTest, ThatCanNotBeReadAreSaid) {
  api_->refused_verb = "list";
  Begin();
  EXPECT_THAT(Look()->problem, HasSubstr("the test says no"));
  EXPECT_THAT(Look()->own, IsEmpty());
}

TEST_F(ProvisioningRequestsTest, OfAJobThatHasItsNodesAreOnlyRead) {
  Begin();
  ASSERT_TRUE(Make(1));
  snapshot_.pods.push_back({.name = "digits-worker-0", .scheduled = true});
  EXPECT_EQ(Look()->digest, "") << "a job that trains is not kept waiting";
  EXPECT_EQ(Look()->own.size(), 1u);
}

TEST(ProvisioningRequestVersionsTest, TheNewestIsPreferred) {
  std::vector<std::string> versions;
  for (const kube::Resource& version : ProvisioningRequestVersions()) {
    versions.push_back(version.ApiVersion());
  }
  EXPECT_THAT(versions,
              ::testing::ElementsAre("autoscaling.x-k8s.io/v1", "autoscaling.x-k8s.io/v1beta1"));
}

}  // namespace
}  // namespace ringmaster::controllers
