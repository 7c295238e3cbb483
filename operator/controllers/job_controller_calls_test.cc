// Which calls the controller makes about which objects: preconditions, ownership, and what it
// leaves alone while the API server refuses.
#include "operator/api/labels.h"
#include "operator/controllers/finalizers.h"
#include "operator/controllers/job_controller.h"
#include "operator/controllers/testing/calls_fixture.h"

namespace ringmaster::controllers {
namespace {

using kube::ErrorCode;
using kube::Json;
using support::Until;
using testing::Call;
using testing::Crd;
using ::testing::HasSubstr;
using testing::JobControllerCallsTest;
using testing::WatchedApi;

TEST_F(JobControllerCallsTest, EveryDeletionNamesTheUidThatItMeans) {
  Apply("digits", {{"runPolicy", {{"ttlSecondsAfterFinished", 0}}}});
  ASSERT_TRUE(Trains(2));
  const std::string uid = runtime::MetaField(Get(kube::HorovodJobs(), "digits"), "uid");
  Change({{"worker", {{"replicas", 3}}}});
  ASSERT_TRUE(Trains(3));
  const std::string tail = runtime::MetaField(Get(kube::Pods(), "digits-worker-2"), "uid");
  Change({{"worker", {{"replicas", 2}}}});
  ASSERT_TRUE(Until([&] { return !api_->Calls("delete", "pods").empty(); }));
  ASSERT_TRUE(Trains(2));
  const std::size_t fakes = 1;  // the fake kubelet's own call has no uid, and needs none
  std::size_t without = 0, with = 0;
  for (const Call& call : api_->Calls("delete", "pods")) {
    without += call.body == "" ? 1 : 0;
    with += call.body == tail ? 1 : 0;
  }
  EXPECT_LE(without, fakes);
  EXPECT_GE(with, 1u);
  cluster_->EndPod("digits-worker-1", 1);
  ASSERT_TRUE(Until([&] { return !api_->Calls("delete", "horovodjobs").empty(); }));
  EXPECT_EQ(api_->Calls("delete", "horovodjobs")[0].body, uid);
}

// For example, a proof of death on a pod that has taken the name of the dead one.
TEST_F(JobControllerCallsTest, EveryMarkNamesTheUidThatItMeans) {
  const std::string uid =
      runtime::MetaField(Apply("digits", {{"worker", {{"replicas", 3}}}}), "uid");
  ASSERT_TRUE(Trains(3));
  Change({{"worker", {{"replicas", 2}}}});
  ASSERT_TRUE(Trains(2));
  std::size_t marks = 0;
  for (const Call& call : api_->Calls("patch", "pods")) {
    if (!call.body.contains("/metadata/annotations"_json_pointer)) continue;
    ++marks;
    EXPECT_NE(call.body["metadata"].value("uid", ""), "") << call.body;
  }
  EXPECT_GE(marks, 4u) << "three addresses and a drain";
  EXPECT_TRUE(Until([&] { return registry_->Facts(uid).sidecars.size() == 2; }))
      << "of pods that are";
}

TEST_F(JobControllerCallsTest, APodThatHasTakenTheNameOfAnotherGetsNoneOfItsMarks) {
  Apply();
  ASSERT_TRUE(Trains(2));
  const Json first = Get(kube::Pods(), "digits-worker-1");
  std::atomic<bool> swapped = false;
  // Just before the pod is annotated, it is replaced by another owner's pod with the same name.
  api_->SetRefuse([&](const Call& call) -> std::optional<ErrorCode> {
    const bool marks = call.verb == "patch" && call.name == "digits-worker-1" &&
                       call.body.contains("/metadata/annotations"_json_pointer);
    if (!marks || swapped.exchange(true)) return std::nullopt;
    EXPECT_TRUE(RemoveFinalizer(store_api_, first));
    EXPECT_TRUE(
        store_api_.Delete(kube::Pods(), "default", "digits-worker-1", {.grace_period_seconds = 0}));
    EXPECT_TRUE(
        store_api_.Create(kube::Pods(), "default", Stranger("digits-worker-1", "other", "")));
    return std::nullopt;
  });
  Change({{"elasticPolicy", {{"minReplicas", 1}}}, {"worker", {{"replicas", 1}}}});
  ASSERT_TRUE(Until([&] { return swapped && Status().ring.size() == 1; }));
  EXPECT_FALSE(Get(kube::Pods(), "digits-worker-1").contains("/metadata/annotations"_json_pointer));
}

TEST_F(JobControllerCallsTest,
       APodThatAnotherOperatorMarksMeanwhileIsNotReleasedAsOneThatNeverTookPart) {
  const std::string uid = runtime::MetaField(Apply(), "uid");
  ASSERT_TRUE(Trains(2));
  std::atomic<int> tries = 0;
  api_->SetRefuse([&](const Call& call) -> std::optional<ErrorCode> {
    const bool releases = call.verb == "patch" && call.name == "digits-worker-7" &&
                          call.body.contains("/metadata/finalizers"_json_pointer);
    if (releases && ++tries == 1) {
      EXPECT_TRUE(store_api_.Patch(
          kube::Pods(), "default", "digits-worker-7",
          {{"metadata", {{"annotations", {{api::kHttpAnnotation, "10.0.0.9:1"}}}}}}, {}));
    }
    return std::nullopt;
  });
  // This pod has a node, its sidecar has never connected, and it is not needed.
  Json late = Stranger("digits-worker-7", "digits", uid);
  late["spec"]["nodeName"] = "n";
  ASSERT_TRUE(api_->Create(kube::Pods(), "default", late));
  ASSERT_TRUE(Until([&] { return tries > 0; }));
  const auto marked = [&] {
    const auto pods = controller_->Pods();
    return std::any_of(pods.begin(), pods.end(), [](const runtime::ObjectPtr& pod) {
      return runtime::MetaField(*pod, "name") == "digits-worker-7" &&
             pod->dump().find("10.0.0.9:1") != std::string::npos;
    });
  };
  ASSERT_TRUE(Until(marked));
  Change({{"worker", {{"replicas", 3}}}});
  ASSERT_TRUE(Trains(3)) << "so the operator has looked at the job since";
  EXPECT_TRUE(HasFinalizer(Get(kube::Pods(), "digits-worker-7")));
}

// Its sidecars have not reconnected yet; what they told its predecessor is in no object.
TEST_F(JobControllerCallsTest, AnOperatorThatBeginsFailsNoJobForAWordThatItHasNotHeard) {
  Apply();
  ASSERT_TRUE(Trains(2));
  controller_->Stop();
  cluster_->EndPod("digits-worker-1", 0);
  Json status = Get(kube::Pods(), "digits-worker-1")["status"];
  for (Json& container : status["containerStatuses"]) {
    container["state"]["terminated"]["finishedAt"] = "2020-01-01T00:00:00Z";
  }
  ASSERT_TRUE(api_->Patch(kube::Pods(), "default", "digits-worker-1", {{"status", status}},
                          {.subresource = "status"}));
  StartOperator();
  ASSERT_TRUE(Until([&] { return Status().worker.succeeded == 1; }));
  EXPECT_FALSE(Status().Is("Failed"));
}

TEST_F(JobControllerCallsTest, NothingIsKeptOfAJobThatIsNoMore) {
  const std::string uid = runtime::MetaField(Apply(), "uid");
  ASSERT_TRUE(Trains(2));
  ASSERT_TRUE(*records_->Newest({"default", "digits", uid}));
  ASSERT_TRUE(
      api_->Delete(kube::HorovodJobs(), "default", "digits", {.propagation = "Background"}));
  EXPECT_TRUE(Until([&] {
    const auto record = records_->Newest({"default", "digits", uid});
    return record && !*record;
  })) << "what is known of it is asked for again, and there is none";
  EXPECT_TRUE(Until([&] { return registry_->Facts(uid).sidecars.empty(); }));
}

TEST_F(JobControllerCallsTest, AJobThatWaitsCostsOneDryRunAndEachOfItsPodsOneWriteLater) {
  StartOperator(true);
  Apply();
  const auto waits = [&] {
    const api::Status status = Status();
    const auto* scheduled = status.Find("Scheduled");
    return scheduled != nullptr && scheduled->reason == "WaitingForRoom";
  };
  ASSERT_TRUE(Until(waits));
  Change({{"runPolicy", {{"backoffLimit", 77}}}});
  ASSERT_TRUE(Until([&] { return Status().observed_generation == 2; }));
  const auto waiting = api_->Calls("create", "pods");
  EXPECT_LE(waiting.size(), 2u) << "one for each spec";
  for (const Call& call : waiting) EXPECT_TRUE(call.dry_run);
  EXPECT_TRUE(api_->Calls("patch", "pods").empty());
  ASSERT_TRUE(api_->Create(kube::Nodes(), "",
                           {{"metadata", {{"name", "n"}}},
                            {"status", {{"allocatable", {{"cpu", "8"}, {"pods", "110"}}}}}}));
  ASSERT_TRUE(Trains(2));
  EXPECT_EQ(api_->Calls("create", "pods").size(), waiting.size() + 2);
  for (const Call& call : api_->Calls("patch", "pods")) EXPECT_FALSE(call.body.contains("spec"));
}

TEST_F(JobControllerCallsTest, AJobThatFindsRoomAtOnceCostsNoDryRun) {
  ASSERT_TRUE(api_->Create(kube::Nodes(), "",
                           {{"metadata", {{"name", "n"}}},
                            {"status", {{"allocatable", {{"cpu", "8"}, {"pods", "110"}}}}}}));
  StartOperator(true);
  Apply();
  ASSERT_TRUE(Trains(2));
  EXPECT_EQ(api_->Calls("create", "pods").size(), 2u);
}

TEST_F(JobControllerCallsTest, RoomThatAPodTakesBesideItsContainersIsTaken) {
  ASSERT_TRUE(api_->Create(kube::Nodes(), "",
                           {{"metadata", {{"name", "n"}}},
                            {"status", {{"allocatable", {{"cpu", "8"}, {"pods", "110"}}}}}}));
  const Json spec = {{"nodeName", "n"},
                     {"resources", {{"requests", {{"cpu", "4"}}}}},
                     {"overhead", {{"cpu", "3"}}},
                     {"containers", {{{"name", "main"}, {"image", "i"}}}}};
  ASSERT_TRUE(api_->Create(kube::Pods(), "kube-system",
                           {{"metadata", {{"name", "large"}}}, {"spec", spec}}));
  StartOperator(true);
  const Json worker = {{"name", "worker"},
                       {"image", "digits"},
                       {"command", {"train"}},
                       {"resources", {{"requests", {{"cpu", "1"}}}}}};
  Apply("digits", {{"worker", {{"template", {{"spec", {{"containers", {worker}}}}}}}}});
  ASSERT_TRUE(Until([&] {
    const api::Status status = Status();
    return status.Find("Scheduled") != nullptr &&
           status.Find("Scheduled")->reason == "WaitingForRoom";
  }));
  ASSERT_TRUE(api_->Delete(kube::Pods(), "kube-system", "large", {.grace_period_seconds = 0}));
  EXPECT_TRUE(Trains(2));
}

TEST_F(JobControllerCallsTest, AJobThatAnotherManagesIsLeftAlone) {
  Apply("digits", {{"runPolicy", {{"managedBy", "kueue.x-k8s.io/multikueue"}}}});
  Apply("ours", {{"runPolicy", {{"managedBy", "ringmaster.dev/operator"}}}});
  ASSERT_TRUE(Until([&] { return !Get(kube::Pods(), "ours-worker-1").is_null(); }));
  EXPECT_TRUE(Get(kube::Pods(), "digits-worker-0").is_null());
  EXPECT_FALSE(Get(kube::HorovodJobs(), "digits").contains("status"));
}

TEST_F(JobControllerCallsTest, APodThatOnlyLooksLikeOneOfTheJobIsNeitherCountedNorDrained) {
  ASSERT_TRUE(api_->Create(kube::Pods(), "default", Stranger("stranger", "digits", "")));
  Apply();
  ASSERT_TRUE(Trains(2));
  EXPECT_EQ(Status().replicas, 2);
  for (const Call& call : api_->Calls("patch", "pods")) {
    if (call.name != "stranger") continue;
    EXPECT_EQ(call.body.dump().find("drain"), std::string::npos);
  }
}

TEST_F(JobControllerCallsTest, ANameThatIsTakenIsSaidAndThePodThereIsLeft) {
  ASSERT_TRUE(api_->Create(kube::Pods(), "default", Stranger("digits-worker-0", "other", "")));
  Apply();
  ASSERT_TRUE(Until([&] {
    const api::Status status = Status();
    const auto* created = status.Find("Created");
    return created != nullptr && created->reason == "PodNameTaken";
  }));
  EXPECT_FALSE(Get(kube::Pods(), "digits-worker-0").is_null());
}

class LabelsTest : public JobControllerCallsTest {
 protected:
  void SetLabel(const std::string& pod, const char* label, const Json& value) {
    ASSERT_TRUE(store_api_.Patch(kube::Pods(), "default", pod,
                                 {{"metadata", {{"labels", {{label, value}}}}}}, {}));
  }
  Json Labels(const std::string& pod) {
    return Get(kube::Pods(), pod).value("/metadata/labels"_json_pointer, Json());
  }
  static bool PutsLabelsBack(const Call& call) {
    return call.verb == "patch" && call.resource == "pods" &&
           call.body.contains("/metadata/labels"_json_pointer);
  }
  std::size_t Tries() {
    const auto calls = api_->Calls("patch", "pods");
    return std::count_if(calls.begin(), calls.end(), PutsLabelsBack);
  }
  // Removes or changes each label of the pod in turn, and expects that only the label is restored.
  void ExpectRestored(const std::string& pod) {
    const Json before = Get(kube::Pods(), pod);
    const std::size_t creates = api_->Calls("create", "pods").size();
    for (const char* label : {api::kReplicaIndexLabel, api::kJobNameLabel, api::kJobRoleLabel}) {
      for (const Json& value : {Json(), Json("other")}) {
        ASSERT_NO_FATAL_FAILURE(SetLabel(pod, label, value));
        EXPECT_TRUE(Until([&] { return Labels(pod) == before["metadata"]["labels"]; }))
            << label << " " << value;
      }
    }
    EXPECT_EQ(Get(kube::Pods(), pod)["metadata"]["uid"], before["metadata"]["uid"]);
    EXPECT_TRUE(HasFinalizer(Get(kube::Pods(), pod)));
    EXPECT_LE(api_->Calls("create", "pods").size(), creates + 6) << "one for each";
  }
  bool IsIdle() { return controller_->state().queue.depth == 0; }
  const Json gated_ = {
      {"worker",
       {{"template", {{"spec", {{"schedulingGates", {{{"name", "example.com/not-yet"}}}}}}}}}}};
};

TEST_F(LabelsTest, APodThatTrainsGetsThemBackAndNoSuccessor) {
  Apply();
  ASSERT_TRUE(Trains(2));
  // The ended pod keeps its name until its successor has one: else the successor may take it.
  api_->SetRefuse([&](const Call& call) -> std::optional<ErrorCode> {
    const bool releases = call.verb == "patch" && call.name == "digits-worker-0" &&
                          call.body.contains("/metadata/finalizers"_json_pointer);
    const bool too_early = releases && Get(kube::Pods(), "digits-worker-2").is_null();
    return too_early ? std::optional(ErrorCode::kUnavailable) : std::nullopt;
  });
  cluster_->EndPod("digits-worker-0", 137);
  ASSERT_TRUE(Until([&] { return Get(kube::Pods(), "digits-worker-0").is_null(); }));
  ASSERT_TRUE(Trains(2));
  const std::vector<std::string> members = {"digits-worker-1", "digits-worker-2"};
  ASSERT_EQ(cluster_->Members(), members);
  ExpectRestored("digits-worker-2");
  EXPECT_EQ(cluster_->Members(), members);
  EXPECT_TRUE(Get(kube::Pods(), "digits-worker-0").is_null()) << "the name was free";
}

TEST_F(LabelsTest, APodOfWhichNobodyHasHeardGetsThemBack) {
  Apply("digits", gated_);
  ASSERT_TRUE(Until([&] { return !Get(kube::Pods(), "digits-worker-1").is_null(); }));
  ExpectRestored("digits-worker-1");
}

TEST_F(LabelsTest, WhatDoesNotHelpIsTriedMoreAndMoreSlowlyAndNoPodIsMadeMeanwhile) {
  Apply();
  ASSERT_TRUE(Trains(2));
  const Json before = Labels("digits-worker-0");
  const auto try_in_vain = [&] {
    const std::uint64_t retries = controller_->state().queue.retries;
    const std::size_t tries = Tries();
    ASSERT_NO_FATAL_FAILURE(SetLabel("digits-worker-0", api::kReplicaIndexLabel, nullptr));
    ASSERT_TRUE(Until([&] { return Tries() >= tries + 4; }));
    EXPECT_GE(controller_->state().queue.retries, retries + 3);
  };
  api_->SetRefuse([](const Call& call) -> std::optional<ErrorCode> {
    return PutsLabelsBack(call) ? std::optional(ErrorCode::kUnavailable) : std::nullopt;
  });
  ASSERT_NO_FATAL_FAILURE(try_in_vain());
  api_->SetRefuse(nullptr);
  ASSERT_TRUE(Until([&] { return Labels("digits-worker-0") == before; }));
  // As by a webhook that removes the labels.
  api_->SetChanged([](const Call& call, Json& patch) {
    if (PutsLabelsBack(call)) patch["metadata"].erase("labels");
  });
  ASSERT_NO_FATAL_FAILURE(try_in_vain());
  api_->SetChanged(nullptr);
  EXPECT_TRUE(Until([&] { return Labels("digits-worker-0") == before; }));
  EXPECT_TRUE(Get(kube::Pods(), "digits-worker-2").is_null());
}

TEST_F(LabelsTest, APodThatTheCacheHasYetToHearOfIsWaitedForInPeace) {
  Apply("digits", gated_);
  ASSERT_TRUE(Until([&] { return !Get(kube::Pods(), "digits-worker-1").is_null(); }));
  api_->SetRefuse([](const Call& call) -> std::optional<ErrorCode> {
    return PutsLabelsBack(call) ? std::optional(ErrorCode::kUnavailable) : std::nullopt;
  });
  ASSERT_NO_FATAL_FAILURE(SetLabel("digits-worker-1", api::kJobRoleLabel, nullptr));
  ASSERT_TRUE(Until([&] { return Tries() > 0 && controller_->Pods().size() == 1; }));
  api_->SetHeld(
      [](const kube::Resource& resource, const std::string&, const kube::WatchOptions& options) {
        return resource == kube::Pods() && !options.label_selector.empty();
      });
  ASSERT_NO_FATAL_FAILURE(SetLabel("digits-worker-1", api::kJobRoleLabel, "worker"));
  EXPECT_TRUE(Until([&] { return IsIdle(); }));
  EXPECT_EQ(controller_->Pods().size(), 1u);
  api_->SetHeld(nullptr);
  EXPECT_TRUE(Until([&] { return controller_->Pods().size() == 2; }));
}

TEST_F(LabelsTest, APodWithoutThemIsLetGoWithItsJob) {
  Apply("digits", gated_);
  ASSERT_TRUE(Until([&] { return !Get(kube::Pods(), "digits-worker-1").is_null(); }));
  controller_->Stop();
  ASSERT_NO_FATAL_FAILURE(SetLabel("digits-worker-1", api::kJobNameLabel, nullptr));
  ASSERT_TRUE(api_->Delete(kube::HorovodJobs(), "default", "digits", {}));
  StartOperator();
  EXPECT_TRUE(Until([&] { return Get(kube::Pods(), "digits-worker-1").is_null(); }));
}

TEST_F(LabelsTest, WhoseAPodIsThatHasNeitherLabelNorOwnerNobodyKnows) {
  Json pod = Stranger("alone", "digits", "");
  pod["metadata"]["labels"].erase(api::kJobNameLabel);
  const std::uint64_t adds = controller_->state().queue.adds;
  ASSERT_TRUE(api_->Create(kube::Pods(), "default", pod));
  ASSERT_TRUE(Until([&] {
    const auto queue = controller_->state().queue;
    return queue.adds > adds && queue.depth == 0;
  }));
  EXPECT_TRUE(HasFinalizer(Get(kube::Pods(), "alone")));
}

// Two jobs in one namespace; the other one must not be touched.
class OtherJobTest : public JobControllerCallsTest {
 protected:
  void MakeOther() {
    const Json other = Apply("other", {{"runPolicy", {{"managedBy", "example.com/another"}}}});
    ASSERT_TRUE(
        api_->Create(kube::Pods(), "default",
                     Stranger("other-worker-7", "other", runtime::MetaField(other, "uid"))));
  }
  void ExpectUntouched() {
    const Json pod = Get(kube::Pods(), "other-worker-7");
    ASSERT_FALSE(pod.is_null());
    EXPECT_TRUE(HasFinalizer(pod));
    EXPECT_FALSE(pod["metadata"].contains("deletionTimestamp"));
  }
};

TEST_F(OtherJobTest, ADeletionTakesItsOwnPodsAlone) {
  MakeOther();
  Apply();
  ASSERT_TRUE(Trains(2));
  ASSERT_TRUE(
      api_->Delete(kube::HorovodJobs(), "default", "digits", {.propagation = "Foreground"}));
  ASSERT_TRUE(Until([&] { return Get(kube::HorovodJobs(), "digits").is_null(); }));
  ExpectUntouched();
}

TEST_F(OtherJobTest, PodsAreNoOrphansWhileNobodyKnowsWhetherTheirJobLives) {
  Apply();
  ASSERT_TRUE(Trains(2));
  controller_->Stop();
  // The cache doesn't know the owner, and the API server doesn't answer.
  ASSERT_TRUE(api_->Create(kube::Pods(), "default", Stranger("lost-worker-7", "lost", "")));
  std::atomic<int> asked = 0;
  api_->SetRefuse([&](const Call& call) -> std::optional<ErrorCode> {
    if (call.verb != "get" || call.resource != "horovodjobs") return std::nullopt;
    ++asked;
    return ErrorCode::kUnavailable;
  });
  StartOperator();
  ASSERT_TRUE(Until([&] { return asked > 2; }));
  EXPECT_TRUE(HasFinalizer(Get(kube::Pods(), "lost-worker-7")));
  api_->SetRefuse(nullptr);
  EXPECT_TRUE(Until([&] { return !HasFinalizer(Get(kube::Pods(), "lost-worker-7")); }));
}

TEST_F(JobControllerCallsTest, NobodyIsToldOfAViewBeforeItsPodIsMarked) {
  api_->SetRefuse([](const Call& call) -> std::optional<ErrorCode> {
    const bool marks = call.verb == "patch" && call.resource == "pods" &&
                       call.body.dump().find(api::kHttpAnnotation) != std::string::npos;
    return marks ? std::optional(ErrorCode::kUnavailable) : std::nullopt;
  });
  Apply();
  ASSERT_TRUE(Until([&] { return !Get(kube::ConfigMaps(), "digits-record").is_null(); }));
  ASSERT_TRUE(Until([&] { return cluster_->WasTold("digits-worker-0", "Target"); }));
  const std::size_t tries = api_->Calls("patch", "pods").size();
  ASSERT_TRUE(Until([&] { return api_->Calls("patch", "pods").size() > tries + 4; }));
  EXPECT_FALSE(cluster_->WasTold("digits-worker-0", "ViewDecided"));
  api_->SetRefuse(nullptr);
  EXPECT_TRUE(Trains(2));
}

TEST_F(JobControllerCallsTest, ALineageBeginsOnlyIfThePodsAsTheyAreListedAllowIt) {
  Apply();
  ASSERT_TRUE(Trains(2));
  Change({{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(Until([&] {
    return Status().state == "Suspended" && Get(kube::Pods(), "digits-worker-0").is_null();
  }));
  // A pod that the cache lacks may be in a view.
  const std::string uid = runtime::MetaField(Get(kube::HorovodJobs(), "digits"), "uid");
  Json hidden = Stranger("digits-worker-7", "digits", uid);
  hidden["metadata"]["uid"] = "hidden";
  hidden["metadata"]["annotations"] = {{api::kHttpAnnotation, "10.0.0.9:1"}};
  api_->SetExtraPods({hidden});
  const auto looks = [&] {
    std::size_t n = 0;
    for (const Call& call : api_->Calls("list", "pods")) {
      n += call.name.find(api::kJobUidLabel) != std::string::npos ? 1 : 0;
    }
    return n;
  };
  Change({{"runPolicy", {{"suspend", false}}}});
  ASSERT_TRUE(Until([&] { return looks() >= 3; }));
  EXPECT_EQ(membership::EpochLineage((*records_->Newest({"default", "digits", uid}))->view->epoch),
            1u);
  api_->SetExtraPods({});
  ASSERT_TRUE(Trains(2));
  EXPECT_EQ(membership::EpochLineage(Status().epoch), 2u);
}

TEST_F(JobControllerCallsTest, EventsAboutAPodRegardTheJobAndNameThePod) {
  Apply();
  ASSERT_TRUE(Trains(2));
  cluster_->EndPod("digits-worker-1", 137);
  const auto failed = [&] {
    for (const Call& call : api_->Calls("create", "events")) {
      if (call.body.value("reason", "") == "PodFailed") return call.body;
    }
    return Json();
  };
  ASSERT_TRUE(Until([&] { return !failed().is_null(); }));
  EXPECT_EQ(failed()["regarding"]["kind"], api::kKind);
  EXPECT_EQ(failed()["related"]["name"], "digits-worker-1");
}

TEST_F(JobControllerCallsTest, AStatusThatSaysTheSameIsNotWrittenAgain) {
  Apply();
  ASSERT_TRUE(Trains(2));
  ASSERT_TRUE(Until([&] { return controller_->state().queue.depth == 0; }));
  const std::size_t before = api_->Calls("update", "horovodjobs").size();
  // Reads for the creation of its record.
  const std::size_t reads = api_->Calls("get", "horovodjobs").size();
  // Reconciles of the job that change nothing.
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t adds = controller_->state().queue.adds;
    ASSERT_TRUE(api_->Patch(kube::Pods(), "default", "digits-worker-0",
                            {{"metadata", {{"annotations", {{"n", std::to_string(i)}}}}}}, {}));
    ASSERT_TRUE(Until([&] {
      const auto queue = controller_->state().queue;
      return queue.adds > adds && queue.depth == 0;
    }));
  }
  EXPECT_EQ(api_->Calls("update", "horovodjobs").size(), before);
  EXPECT_EQ(api_->Calls("get", "horovodjobs").size(), reads) << "nobody is an orphan";
}

TEST_F(JobControllerCallsTest, AReplacementAvoidsTheNodeThatLostThePod) {
  Apply();
  ASSERT_TRUE(Trains(2));
  ASSERT_TRUE(api_->Patch(kube::Pods(), "default", "digits-worker-1",
                          {{"status", {{"phase", "Failed"}, {"reason", "Evicted"}}}},
                          {.subresource = "status"}));
  ASSERT_TRUE(Until([&] { return !Get(kube::Pods(), "digits-worker-2").is_null(); }));
  EXPECT_THAT(Get(kube::Pods(), "digits-worker-2")["spec"]["affinity"].dump(),
              HasSubstr(R"("operator":"NotIn","values":["n"])"));
}

TEST_F(JobControllerCallsTest, ADeathThatSomebodyVouchesForIsForcedByUid) {
  Apply();
  ASSERT_TRUE(Trains(2));
  const std::string uid = runtime::MetaField(Get(kube::Pods(), "digits-worker-1"), "uid");
  cluster_->LosePod("digits-worker-1");
  ASSERT_TRUE(api_->Delete(kube::Pods(), "default", "digits-worker-1", {.uid = uid}));
  const std::size_t before = api_->Calls("delete", "pods").size();
  ASSERT_TRUE(
      api_->Patch(kube::Pods(), "default", "digits-worker-1",
                  {{"metadata", {{"annotations", {{api::kProvenAnnotation, "unplugged"}}}}}}, {}));
  ASSERT_TRUE(Until(
      [&] { return runtime::MetaField(Get(kube::Pods(), "digits-worker-1"), "uid") != uid; }));
  const auto deletes = api_->Calls("delete", "pods");
  ASSERT_GT(deletes.size(), before);
  EXPECT_EQ(deletes[before].name, "digits-worker-1");
  EXPECT_EQ(deletes[before].body, uid);
}

class CachesTest : public ::testing::Test {
 protected:
  kube::Result<void> Start(JobControllerOptions options, std::stop_token stop = {}) {
    const auto api = std::make_shared<WatchedApi>(
        std::make_shared<local::Store>(local::StoreOptions{.crd_yaml = Crd()}));
    api->SetRefuse([](const Call& call) -> std::optional<ErrorCode> {
      return call.verb == "list" ? std::optional(ErrorCode::kForbidden) : std::nullopt;
    });
    SidecarRegistry registry;
    QuorumRecordStore records(api);
    JobController controller(api, &registry, &records, std::move(options));
    return controller.Start(stop);
  }
};

TEST_F(CachesTest, ThatCanNotBeFilledAreNamedInTime) {
  const auto started = Start({.sync_timeout = std::chrono::seconds(2)});
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("the test says no"));
}

TEST_F(CachesTest, AreWaitedForOnlyUntilTheStop) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(Start({}, stop.get_token()).error().message, HasSubstr("stopped"));
}

}  // namespace
}  // namespace ringmaster::controllers
