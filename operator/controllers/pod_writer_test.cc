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
  static std::vector<planner::PodCreate> Granted(int count) {
    std::vector<planner::PodCreate> creates(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) creates[i] = {.index = i, .granted = true};
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

TEST_F(PodWriterTest, WhileSomebodyCountsTheSecondsALookMakesOneAndLetsFewStart) {
  std::vector<planner::PodAdmit> admits;
  std::vector<planner::PodCreate> creates(20);
  for (int i = 0; i < 20; ++i) {
    const Json pod = MakePod(i, {{"spec", {{"schedulingGates", {{{"name", api::kGangGate}}}}}}});
    admits.push_back({MetaField(pod, "name"), MetaField(pod, "uid")});
    creates[i].index = 20 + i;
  }
  queue_.AddFirst("default/another");
  EXPECT_TRUE(writer_.CreateAll(job_, creates));
  EXPECT_TRUE(writer_.AdmitAll(job_, admits));
  EXPECT_FALSE(Pod(20).is_null());
  EXPECT_TRUE(Pod(21).is_null());
  EXPECT_FALSE(Annotations(0).empty());
  EXPECT_TRUE(Annotations(19).empty());
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
      writer_.CreateAll(job_, Granted(5), 5, {{"digits-worker-5", MetaField(before, "uid"), "r"}}));
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(Stands(i)) << i;
}

TEST_F(PodWriterTest, WhereAQuotaLetsEnoughOfThemThroughTheyStay) {
  api_->creates_allowed = 3;
  EXPECT_TRUE(writer_.CreateAll(job_, Granted(5), 3));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Stands(i), i < 3) << i;
}

TEST_F(PodWriterTest, ANameThatIsFreeSoonIsNoReasonToBeginAnew) {
  MakePod(4, {{"metadata", {{"ownerReferences", nullptr}, {"finalizers", {"example.com/mine"}}}}},
          false);
  ASSERT_TRUE(api_->Delete(kube::Pods(), "default", "digits-worker-4", {}));
  EXPECT_TRUE(writer_.CreateAll(job_, Granted(5), 5));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Stands(i)) << i;
}

TEST_F(PodWriterTest, ManyRefusalsOfOneTryAreOne) {
  api_->creates_allowed = 3;  // so four are requested at the same time
  EXPECT_TRUE(writer_.CreateAll(job_, Granted(7), 1));
  EXPECT_THAT(EventReasons(), ::testing::UnorderedElementsAre("PodCreated", "FailedCreate"));
}

TEST_F(PodWriterTest, AfterARefusalTheOthersAreNotAskedFor) {
  api_->refused_verb = "create";
  EXPECT_TRUE(writer_.CreateAll(job_, {{.index = 0}, {.index = 1}}))
      << "the backoff brings it back";
  api_->refused_verb = "";
  EXPECT_TRUE(writer_.CreateAll(job_, {{.index = 0}}));
  EXPECT_TRUE(Pod(0).is_null()) << "it is too early";
  EXPECT_TRUE(writer_.CreateAll(job_, {})) << "nothing is needed any more";
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

TEST_F(PodWriterTest, AdmittingTakesOurGateAlone) {
  const Json pod = MakePod(
      0, {{"spec", {{"schedulingGates", {{{"name", api::kGangGate}}, {{"name", "a/b"}}}}}}});
  EXPECT_TRUE(writer_.AdmitAll(job_, {{"digits-worker-0", "another uid"}}));
  EXPECT_EQ(Pod(0)["spec"]["schedulingGates"].size(), 2u);
  EXPECT_TRUE(writer_.AdmitAll(job_, {{"digits-worker-0", MetaField(pod, "uid")}}));
  EXPECT_EQ(Pod(0)["spec"]["schedulingGates"], Json::parse(R"([{"name": "a/b"}])"));
}

TEST_F(PodWriterTest, APodThatCallsForNodesSaysSo) {
  for (const bool calls : {false, true}) {
    const Json pod =
        MakePod(calls, {{"spec", {{"schedulingGates", {{{"name", api::kGangGate}}}}}}});
    const planner::PodAdmit admit = {
        .name = MetaField(pod, "name"), .uid = MetaField(pod, "uid"), .calls_for_nodes = calls};
    EXPECT_TRUE(writer_.AdmitAll(job_, {admit}));
    EXPECT_EQ(Annotations(calls).contains(api::kCallsForNodesAnnotation), calls);
    EXPECT_TRUE(Annotations(calls).contains(api::kAdmittedAnnotation));
  }
}

TEST_F(PodWriterTest, APodForWhichCapacityIsBookedNamesTheRequest) {
  const auto booking = std::make_shared<const provisioning::Booking>(
      provisioning::Booking{.request = "digits-1", .class_name = "atomic", .pods = 2});
  const Json pod = MakePod(0, {{"spec", {{"schedulingGates", {{{"name", api::kGangGate}}}}}}});
  EXPECT_TRUE(writer_.AdmitAll(
      job_, {{.name = MetaField(pod, "name"), .uid = MetaField(pod, "uid"), .booking = booking}}));
  EXPECT_TRUE(writer_.CreateAll(
      job_, {{.index = 1, .reason = "wanted", .granted = true, .booking = booking}}, 0, {}));
  for (const int index : {0, 1}) {
    EXPECT_EQ(Annotations(index)[provisioning::kConsumeAnnotation], "digits-1") << index;
    EXPECT_EQ(Annotations(index)[provisioning::kClassAnnotation], "atomic") << index;
    EXPECT_EQ(ReadPod(Pod(index)).consumes, "digits-1") << index;
  }
  EXPECT_TRUE(Annotations(0).contains(api::kAdmittedAnnotation));
}

TEST_F(PodWriterTest, WhoseGateGoesMayStartInItsDomainAlone) {
  job_.spec.run_policy.scheduling_policy.topology = {"example.com/rack", false};
  const Json pod = MakePod(0, Json::parse(R"({"spec": {
      "schedulingGates": [{"name": "ringmaster.dev/gang"}], "nodeSelector": {"pool": "gpu"},
      "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "new", "operator": "Exists"}]}}]}}
      }})"));
  const std::string uid = MetaField(pod, "uid");
  EXPECT_TRUE(writer_.AdmitAll(job_, {{"digits-worker-0", uid, "b"}}));
  const Json wishes =
      Pod(0)["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
  ASSERT_EQ(wishes.size(), 2u) << "its own is kept";
  EXPECT_EQ(wishes[1]["preference"]["matchExpressions"][0]["values"], Json::array({"b"}));
  EXPECT_EQ(Pod(0)["spec"]["nodeSelector"], Json({{"pool", "gpu"}}));

  job_.spec.run_policy.scheduling_policy.topology.required = true;
  const Json other = MakePod(1, Json::parse(R"({"spec": {
      "schedulingGates": [{"name": "ringmaster.dev/gang"}], "nodeSelector": {"pool": "gpu"}}})"));
  EXPECT_TRUE(writer_.AdmitAll(job_, {{"digits-worker-1", MetaField(other, "uid"), "b"}}));
  EXPECT_EQ(Pod(1)["spec"]["nodeSelector"], Json({{"pool", "gpu"}, {"example.com/rack", "b"}}));
  EXPECT_EQ(Pod(1)["metadata"]["annotations"][api::kTopologyAnnotation], "example.com/rack=b");
}

TEST_F(PodWriterTest, AGateThatMayNotBeLiftedIsToldOfOnceForAllAndTriedLater) {
  std::vector<planner::PodAdmit> admits;
  for (const int index : {0, 1}) {
    const Json pod =
        MakePod(index, {{"spec", {{"schedulingGates", {{{"name", api::kGangGate}}}}}}});
    admits.push_back({MetaField(pod, "name"), MetaField(pod, "uid")});
  }
  api_->refused_verb = "patch";
  EXPECT_TRUE(writer_.AdmitAll(job_, admits)) << "the backoff brings it back";
  EXPECT_TRUE(backoff_.PodsArePaused(job_)) << "what is held for them is free meanwhile";
  EXPECT_TRUE(writer_.AdmitAll(job_, admits));
  EXPECT_THAT(EventReasons(), ElementsAre("FailedAdmit"));
  api::Status status;
  backoff_.Show(job_, true, "now", &status);
  EXPECT_EQ(status.Find("Created")->reason, "PodsForbidden");
  api_->refused_verb = "";
  EXPECT_TRUE(writer_.CreateAll(job_, {})) << "that nobody is to be made mends nothing";
  EXPECT_TRUE(backoff_.PodsArePaused(job_));
  backoff_.Forget(job_.uid);
  EXPECT_TRUE(writer_.AdmitAll(job_, admits));
  EXPECT_EQ(Pod(0)["spec"].value("schedulingGates", Json::array()).size(), 0u);
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
