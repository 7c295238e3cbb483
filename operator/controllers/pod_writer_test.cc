#include "operator/controllers/pod_writer.h"

#include "operator/controllers/pod_facts.h"
#include "operator/controllers/testing/parts_fixture.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using runtime::MetaField;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PodWriterTest : public testing::PartsTest {
 protected:
  static std::vector<planner::PodCreate> Creates(int count) {
    std::vector<planner::PodCreate> creates(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) creates[i].index = i;
    return creates;
  }
  bool Stands(int index) {
    const Json pod = Pod(index);
    return !pod.is_null() && MetaField(pod, "deletionTimestamp").empty();
  }
  Json Annotations(int index) {
    return Pod(index).value("/metadata/annotations"_json_pointer, Json::object());
  }
};

TEST_F(PodWriterTest, APodThatIsMadeIsInTheCacheAtOnceAndHasTheFinalizer) {
  EXPECT_TRUE(writer_.CreateAll(job_, {{.index = 1, .reason = "to start the job"}}));
  const auto cached = pods_.Get("default", "digits-worker-1");
  ASSERT_NE(cached, nullptr);
  EXPECT_TRUE(IsOwnedBy(*cached, job_.uid) && HasFinalizer(*cached));
  EXPECT_THAT(EventReasons(), ElementsAre("PodCreated"));
}

TEST_F(PodWriterTest, APodThatIsMadeSaysWhatItWasMadeFrom) {
  job_.spec.pods_digest = "digest";
  EXPECT_TRUE(writer_.CreateAll(job_, {{.index = 1, .reason = "to start the job"}}));
  EXPECT_EQ(ReadPod(Pod(1)).made_from, "digest");
  EXPECT_EQ(ReadPod(Pod(1)).made_at, 1) << "the generation of the job";
}

TEST_F(PodWriterTest, ManyAreMadeAndToldOfInOneEvent) {
  std::vector<planner::PodCreate> creates(20);
  for (int i = 0; i < 20; ++i) creates[i] = {.index = i, .reason = "to start the job"};
  EXPECT_TRUE(writer_.CreateAll(job_, creates));
  EXPECT_EQ(pods_.Indexed("default", job_.Key()).size(), 20u);
  EXPECT_THAT(EventReasons(), ElementsAre("PodCreated"));
  const auto events = api_->ListAll(kube::Events(), "default", {});
  EXPECT_THAT(events->items[0].value("note", ""), ::testing::HasSubstr("20 pods created"));
}

TEST_F(PodWriterTest, OneLookMakesSoManyAndComesBackForTheRest) {
  std::vector<planner::PodCreate> creates(100);
  for (int i = 0; i < 100; ++i) creates[i].index = i;
  EXPECT_TRUE(writer_.CreateAll(job_, creates));
  const std::size_t made = pods_.Indexed("default", job_.Key()).size();
  EXPECT_LT(made, 100u);
  EXPECT_GT(made, 50u);
  EXPECT_EQ(queue_.size(), 1u);
}

TEST_F(PodWriterTest, WhileSomebodyCountsTheSecondsALookMakesOne) {
  queue_.AddFirst("default/another");
  EXPECT_TRUE(writer_.CreateAll(job_, Creates(20)));
  EXPECT_FALSE(Pod(0).is_null());
  EXPECT_TRUE(Pod(1).is_null());
  EXPECT_EQ(queue_.size(), 2u) << "the job comes back for the rest";
}

TEST_F(PodWriterTest, ADrainThatIsMarkedBringsTheJobBackBeforeAllOthers) {
  const Json pod = MakePod(0);
  queue_.Add("default/another");
  EXPECT_TRUE(writer_.Annotate(job_, "digits-worker-0", MetaField(pod, "uid"),
                               {{api::kDrainSinceAnnotation, "2026-01-01T00:00:00Z"}}));
  EXPECT_EQ(queue_.Take({}), job_.Key());
}

TEST_F(PodWriterTest, NoMoreAreMadeWhenTheJobIsAnotherThanItWas) {
  object_["metadata"]["generation"] = job_.generation + 1;
  object_["metadata"]["resourceVersion"] = "1000000";
  ASSERT_TRUE(jobs_.Observe(object_));
  EXPECT_TRUE(writer_.CreateAll(job_, {{.index = 0}, {.index = 1}}));
  EXPECT_TRUE(Pod(0).is_null());
}

TEST_F(PodWriterTest, HalfAGangIsTakenAwayAgainWithWhatWasMadeOfItBefore) {
  const Json before = MakePod(5);
  api_->creates_allowed = 3;
  EXPECT_TRUE(
      writer_.CreateAll(job_, Creates(5), 5, {{"digits-worker-5", MetaField(before, "uid"), "r"}}));
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(Stands(i)) << i;
}

TEST_F(PodWriterTest, WhereAQuotaLetsEnoughOfThemThroughTheyStay) {
  api_->creates_allowed = 3;
  EXPECT_TRUE(writer_.CreateAll(job_, Creates(5), 3));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Stands(i), i < 3) << i;
}

TEST_F(PodWriterTest, ANameThatIsFreeSoonIsNoReasonToBeginAnew) {
  MakePod(4, {{"metadata", {{"ownerReferences", nullptr}, {"finalizers", {"example.com/mine"}}}}},
          false);
  ASSERT_TRUE(api_->Delete(kube::Pods(), "default", "digits-worker-4", {}));
  EXPECT_TRUE(writer_.CreateAll(job_, Creates(5), 5));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Stands(i)) << i;
}

TEST_F(PodWriterTest, ManyRefusalsOfOneTryAreOne) {
  api_->creates_allowed = 3;  // so four are requested at the same time
  EXPECT_TRUE(writer_.CreateAll(job_, Creates(7), 1));
  EXPECT_THAT(EventReasons(), ::testing::UnorderedElementsAre("PodCreated", "FailedCreate"));
}

TEST_F(PodWriterTest, AfterARefusalTheOthersAreNotAskedFor) {
  api_->refused_verb = "create";
  EXPECT_TRUE(writer_.CreateAll(job_, {{.index = 0}, {.index = 1}}))
      << "the backoff brings it back";
  api_->refused_verb = "";
  EXPECT_TRUE(writer_.CreateAll(job_, {{.index = 0}}));
  EXPECT_TRUE(Pod(0).is_null()) << "it is too early";
  EXPECT_TRUE(writer_.CreateAll(job_, {})) << "none is asked for, and some may be kept back";
  EXPECT_TRUE(backoff_.PodsArePaused(job_));
  backoff_.PodsAreThere(job_);
  EXPECT_TRUE(writer_.CreateAll(job_, {{.index = 0}}));
  EXPECT_FALSE(Pod(0).is_null());
}

TEST_F(PodWriterTest, APodThatTheCacheLacksIsTakenFromTheServer) {
  MakePod(0, Json::object(), false);
  EXPECT_TRUE(writer_.CreateAll(job_, {{.index = 0}}));
  EXPECT_NE(pods_.Get("default", "digits-worker-0"), nullptr);
  EXPECT_EQ(queue_.size(), 1u) << "the job is looked at with it";
}

TEST_F(PodWriterTest, LabelsThatSomebodyTookOffAreWrittenAgain) {
  MakePod(0, {{"metadata", {{"labels", {{api::kJobNameLabel, "another"}}}}}});
  EXPECT_TRUE(writer_.RestoreLabels(job_, {}));
  EXPECT_TRUE(HasLabels(Pod(0), LabelsOf(job_, 0)));
  // This pod is missing in the cache, which selects by label, but its sidecar is connected.
  MakePod(1, {{"metadata", {{"labels", {{api::kJobRoleLabel, nullptr}}}}}}, false);
  planner::SidecarFacts heard;
  heard.pod_name = "digits-worker-1";
  EXPECT_FALSE(writer_.RestoreLabels(job_, {heard}));
  EXPECT_TRUE(HasLabels(Pod(1), LabelsOf(job_, 1)));
}

TEST_F(PodWriterTest, LabelsOfManyPodsAreWrittenSeveralAtATime) {
  const int at_once = static_cast<int>(PodWriterOptions().calls_at_once);
  std::vector<planner::SidecarFacts> heard(static_cast<std::size_t>(at_once));
  for (int i = 0; i < at_once; ++i) {
    MakePod(i, {{"metadata", {{"labels", {{api::kJobNameLabel, "another"}}}}}});
    MakePod(at_once + i, {{"metadata", {{"labels", {{api::kJobRoleLabel, nullptr}}}}}}, false);
    heard[static_cast<std::size_t>(i)].pod_name = planner::PodName("digits", at_once + i);
  }
  api_->pods_at_once.Expect(at_once);
  EXPECT_FALSE(writer_.RestoreLabels(job_, heard));
  EXPECT_EQ(api_->pods_at_once.rounds(), 3) << "patches, reads, patches";
  api_->pods_at_once.Expect(0);
  for (int i = 0; i < 2 * at_once; ++i) EXPECT_TRUE(HasLabels(Pod(i), LabelsOf(job_, i))) << i;
}

TEST_F(PodWriterTest, WhatHasBeenMadeWasNotRefused) {
  api_->creates_allowed = 0;
  EXPECT_TRUE(writer_.CreateAll(job_, Creates(2)));
  EXPECT_TRUE(backoff_.PodsWereRefused(job_));
  api_->creates_allowed = 5;
  CreationBackoff no_pause{
      {std::chrono::milliseconds(0), std::chrono::milliseconds(0)}, &queue_, &events_};
  PodWriter writer{api_, {&pods_, &jobs_}, &queue_, &no_pause, &events_, {}};
  no_pause.Failed(job_, Needed::kPods, api_->refusal);
  EXPECT_TRUE(writer.CreateAll(job_, Creates(2)));
  EXPECT_FALSE(no_pause.PodsWereRefused(job_));
}

TEST_F(PodWriterTest, ADryRunSaysHowAPodWouldBeStoredAndStoresNone) {
  api_->SetAdmission({{"spec", {{"priority", 7}}}});
  const auto pod = writer_.TryOut(job_, 3);
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ((*pod)["spec"]["priority"], 7);
  EXPECT_EQ(MetaField(*pod, "name"), "digits-worker-3");
  EXPECT_TRUE(Pod(3).is_null());
  EXPECT_EQ(pods_.Get("default", "digits-worker-3"), nullptr);
}

TEST_F(PodWriterTest, WhatADryRunShowsToBeRefusedIsToldOfAndPausesUntilOneGoesWell) {
  api_->refuses_dry_runs = true;
  EXPECT_EQ(writer_.TryOut(job_, 0), nullptr);
  EXPECT_TRUE(backoff_.PodsArePaused(job_));
  EXPECT_FALSE(backoff_.PodsWereRefused(job_)) << "nobody has given anything for them";
  EXPECT_THAT(EventReasons(), ElementsAre("FailedCreate"));
  api::Status status;
  backoff_.Show(job_, false, "now", &status);
  EXPECT_EQ(status.Find("Created")->reason, "PodsForbidden");
  api_->refuses_dry_runs = false;
  EXPECT_NE(writer_.TryOut(job_, 0), nullptr);
  EXPECT_FALSE(backoff_.PodsArePaused(job_));
}

TEST_F(PodWriterTest, WhereAWebhookKeepsTheServerFromADryRunTheTemplateHasToDo) {
  api_->refuses_dry_runs = true;
  api_->refusal = {.code = kube::ErrorCode::kInvalid,
                   .http_status = 400,
                   .message = "admission webhook \"a.example\" does not support dry run"};
  const auto pod = writer_.TryOut(job_, 0);
  ASSERT_NE(pod, nullptr);
  EXPECT_FALSE((*pod)["spec"].contains("priority"));
  EXPECT_FALSE(backoff_.PodsArePaused(job_)) << "the template is not wrong";
  EXPECT_THAT(EventReasons(), IsEmpty());
}

TEST_F(PodWriterTest, APodThatCallsForNodesSaysSo) {
  EXPECT_TRUE(writer_.CreateAll(job_, {{.index = 0}, {.index = 1, .calls_for_nodes = true}}));
  EXPECT_FALSE(ReadPod(Pod(0)).calls_for_nodes);
  EXPECT_TRUE(ReadPod(Pod(1)).calls_for_nodes);
}

TEST_F(PodWriterTest, APodForWhichCapacityIsBookedNamesTheRequest) {
  const auto booking = std::make_shared<const provisioning::Booking>(
      provisioning::Booking{.request = "digits-1", .class_name = "atomic", .pods = 2});
  EXPECT_TRUE(
      writer_.CreateAll(job_, {{.index = 1, .reason = "wanted", .booking = booking}}, 0, {}));
  EXPECT_EQ(Annotations(1)[provisioning::kConsumeAnnotation], "digits-1");
  EXPECT_EQ(Annotations(1)[provisioning::kClassAnnotation], "atomic");
  EXPECT_EQ(ReadPod(Pod(1)).consumes, "digits-1");
}

TEST_F(PodWriterTest, APodIsMadeForItsDomainBesideWhatItsTemplateSays) {
  Json& spec = job_.spec.worker.pod_template["spec"];
  spec["nodeSelector"] = {{"pool", "gpu"}};
  spec["affinity"] = Json::parse(R"({"nodeAffinity": {
      "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {
        "matchExpressions": [{"key": "new", "operator": "Exists"}]}}]}})");
  job_.spec.run_policy.scheduling_policy.topology = {"example.com/rack", false};
  EXPECT_TRUE(writer_.CreateAll(job_, {{.index = 0, .domain = "b"}}));
  const Json wishes =
      Pod(0)["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
  ASSERT_EQ(wishes.size(), 2u) << "its own is kept";
  EXPECT_EQ(wishes[1]["preference"]["matchExpressions"][0]["values"], Json::array({"b"}));
  EXPECT_EQ(Pod(0)["spec"]["nodeSelector"], Json({{"pool", "gpu"}}));
  job_.spec.run_policy.scheduling_policy.topology.required = true;
  EXPECT_TRUE(writer_.CreateAll(job_, {{.index = 1, .domain = "b"}}));
  EXPECT_EQ(Pod(1)["spec"]["nodeSelector"], Json({{"pool", "gpu"}, {"example.com/rack", "b"}}));
  EXPECT_EQ(Pod(1)["metadata"]["annotations"][api::kTopologyAnnotation], "example.com/rack=b");
}

TEST_F(PodWriterTest, AnnotationsAreOfThatPodAlone) {
  const Json pod = MakePod(0);
  EXPECT_FALSE(writer_.Annotate(job_, "digits-worker-0", "another uid", {{"a", "b"}}));
  EXPECT_THAT(Annotations(0), IsEmpty());
  EXPECT_TRUE(writer_.Annotate(job_, "digits-worker-0", MetaField(pod, "uid"), {{"a", "b"}}));
  EXPECT_EQ(Annotations(0)["a"], "b");
  EXPECT_TRUE(writer_.Annotate(job_, "digits-worker-7", "gone", {{"a", "b"}}));
}

TEST_F(PodWriterTest, ARefusedDeleteOrReleaseComesBack) {
  const Json pod = MakePod(0, {{"metadata", {{"finalizers", {api::kProofFinalizer}}}}});
  const std::string uid = MetaField(pod, "uid");
  EXPECT_TRUE(writer_.Delete(job_, {"digits-worker-0", "another uid", "r"}));
  EXPECT_EQ(MetaField(Pod(0), "deletionTimestamp"), "");
  EXPECT_TRUE(writer_.Delete(job_, {"digits-worker-0", uid, "r"}));
  EXPECT_NE(MetaField(Pod(0), "deletionTimestamp"), "");
  api_->refused_verb = "patch";
  EXPECT_FALSE(writer_.Release(job_, {"digits-worker-0", uid, "r"}));
  EXPECT_TRUE(HasFinalizer(Pod(0)));
  api_->refused_verb = "";
  EXPECT_TRUE(writer_.Release(job_, {"digits-worker-0", uid, "r"}));
  EXPECT_FALSE(HasFinalizer(Pod(0)));
}

// The cache may get a newer pod between the decision and the call.
TEST_F(PodWriterTest, APodThatIsReleasedAsItWasSeenMustStillBeTheOneThatWasDecidedAbout) {
  const Json seen = MakePod(0, {{"metadata", {{"finalizers", {api::kProofFinalizer}}}}});
  const planner::PodRelease release = {.name = "digits-worker-0",
                                       .uid = MetaField(seen, "uid"),
                                       .reason = "it never took part",
                                       .as_seen = MetaField(seen, "resourceVersion")};
  ASSERT_TRUE(api_->Patch(kube::Pods(), "default", "digits-worker-0",
                          {{"metadata", {{"annotations", {{api::kHttpAnnotation, "a:1"}}}}}}, {}));
  EXPECT_FALSE(writer_.Release(job_, release)) << "the cache is behind";
  pods_.Observe(Pod(0));
  EXPECT_FALSE(writer_.Release(job_, release)) << "the decision is behind";
  EXPECT_TRUE(HasFinalizer(Pod(0)));
}

}  // namespace
}  // namespace ringmaster::controllers
