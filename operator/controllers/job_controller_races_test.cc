// What may happen between the controller's observation and its action: another job's turn, another
// pod with that name, an outdated cache.
#include "operator/api/labels.h"
#include "operator/controllers/finalizers.h"
#include "operator/controllers/testing/calls_fixture.h"

namespace ringmaster::controllers {
namespace {

using kube::ErrorCode;
using kube::Json;
using std::chrono::milliseconds;
using support::Until;
using testing::Call;
using testing::JobControllerCallsTest;

class RacesTest : public JobControllerCallsTest {
 protected:
  // Another owner's pod gets the name of `pod`, and the caches have it.
  void Replace(const std::string& pod, const Json& stranger) {
    ASSERT_TRUE(store_api_.Patch(kube::Pods(), "default", pod,
                                 {{"metadata", {{"finalizers", nullptr}}}}, {}));
    const auto deleted =
        store_api_.Delete(kube::Pods(), "default", pod, {.grace_period_seconds = 0});
    ASSERT_TRUE(deleted) << deleted.error().message;
    const auto created = store_api_.Create(kube::Pods(), "default", stranger);
    ASSERT_TRUE(created) << created.error().message;
    const std::string uid = runtime::MetaField(*created, "uid");
    ASSERT_TRUE(Until([&] { return Caches(pod, uid); }));
  }
  bool Caches(const std::string& pod, const std::string& uid) {
    for (const auto& object : controller_->Pods()) {
      if (runtime::MetaField(*object, "name") == pod) {
        return runtime::MetaField(*object, "uid") == uid;
      }
    }
    return false;
  }
  // A job that this controller doesn't manage; it owns the objects that a test puts in the way.
  std::string AnotherJob() {
    const Json job = Apply("other", {{"runPolicy", {{"managedBy", "example.com/another"}}}});
    return runtime::MetaField(job, "uid");
  }
  bool IsIdle() { return controller_->state().queue.depth == 0; }
};

// ---- Two jobs, and capacity for one.

class GangRacesTest : public RacesTest {
 protected:
  void StartWithRoomFor(int pods) {
    ASSERT_TRUE(
        store_api_.Create(kube::Nodes(), "",
                          {{"metadata", {{"name", "n"}}},
                           {"status", {{"allocatable", {{"pods", std::to_string(pods)}}}}}}));
    StartOperator(true);
  }
  static bool LiftsGates(const Call& call) {
    return call.verb == "patch" && call.resource == "pods" && call.body.contains("spec");
  }
  // Whether the first removal of this pod's gates succeeded; nullopt before the store answers it.
  std::optional<bool> HowGatesWereLifted(const std::string& pod) {
    for (const auto& [call, was_done] : api_->AnsweredPatches()) {
      if (LiftsGates(call) && call.name == pod) return was_done;
    }
    return std::nullopt;
  }
  bool IsGated(const std::string& pod) { return Gates(pod) > 0; }
  bool IsAdmitted(const std::string& pod) { return Gates(pod) == 0; }
  int Gates(const std::string& pod) {  // -1: there is no such pod
    const Json object = Get(kube::Pods(), pod);
    if (object.is_null()) return -1;
    return static_cast<int>(object["spec"].value("schedulingGates", Json::array()).size());
  }
  bool WaitsForRoom(const std::string& job) {
    const api::Status status = Status(job);
    const auto* scheduled = status.Find("Scheduled");
    return scheduled != nullptr && scheduled->reason == "WaitingForRoom";
  }

  void GiveRoomFor(int pods) {
    ASSERT_TRUE(store_api_.Patch(kube::Nodes(), "", "n",
                                 {{"status", {{"allocatable", {{"pods", std::to_string(pods)}}}}}},
                                 {.subresource = "status"}));
  }
  static bool Makes(const Call& call, const std::string& job) {
    return call.verb == "create" && call.resource == "pods" &&
           runtime::MetaField(call.body, "name").rfind(job + "-", 0) == 0;
  }
};

// A granted place counts before the pod exists, and no lock is held until then.
TEST_F(GangRacesTest, TwoJobsDoNotCountOnTheSameRoom) {
  ASSERT_NO_FATAL_FAILURE(StartWithRoomFor(2));
  auto reached = std::make_shared<std::atomic<bool>>(false);
  auto open = std::make_shared<std::atomic<bool>>(false);
  api_->SetBefore([reached, open](const Call& call) {
    if (!Makes(call, "a") || reached->exchange(true)) return;
    (void)Until([&] { return open->load(); });
  });
  Apply("a");
  ASSERT_TRUE(Until([&] { return reached->load(); }));
  Apply("b");
  EXPECT_TRUE(Until([&] { return IsGated("b-worker-0") && IsGated("b-worker-1"); }));
  EXPECT_TRUE(Until([&] { return WaitsForRoom("b"); }));
  *open = true;
  ASSERT_TRUE(Until([&] { return IsAdmitted("a-worker-0") && IsAdmitted("a-worker-1"); }));
  EXPECT_TRUE(IsGated("b-worker-0") && IsGated("b-worker-1"));
}

TEST_F(GangRacesTest, AJobWhosePodsAreRefusedLeavesItsRoomToTheNext) {
  api_->SetRefuse([](const Call& call) -> std::optional<ErrorCode> {
    if (Makes(call, "a")) return ErrorCode::kForbidden;
    return std::nullopt;
  });
  ASSERT_NO_FATAL_FAILURE(StartWithRoomFor(2));
  Apply("a");
  ASSERT_TRUE(Until([&] {
    const api::Status status = Status("a");
    return status.Find("Created") != nullptr && !status.Is("Created");
  }));
  Apply("b");
  EXPECT_TRUE(Until([&] { return IsAdmitted("b-worker-0") && IsAdmitted("b-worker-1"); }));
}

TEST_F(GangRacesTest, WhoIsAdmittedTakesItsRoomBeforeTheCacheKnows) {
  api_->SetHeld(
      [](const kube::Resource& resource, const std::string& ns, const kube::WatchOptions& options) {
        return resource == kube::Pods() && ns.empty() && options.label_selector.empty();
      });
  ASSERT_NO_FATAL_FAILURE(StartWithRoomFor(2));
  Apply("a");
  ASSERT_TRUE(Until([&] { return IsAdmitted("a-worker-0") && IsAdmitted("a-worker-1"); }));
  Apply("b");
  EXPECT_TRUE(Until([&] { return WaitsForRoom("b"); }));
  EXPECT_TRUE(IsGated("b-worker-0") && IsGated("b-worker-1"));
}

TEST_F(GangRacesTest, TheGateOfAnotherPodOfThatNameStays) {
  const std::string other = AnotherJob();
  ASSERT_NO_FATAL_FAILURE(StartWithRoomFor(1));
  Apply("b");
  ASSERT_TRUE(Until([&] { return IsGated("b-worker-0") && IsGated("b-worker-1"); }));
  Json stranger = Stranger("b-worker-0", "other", other);
  stranger["spec"]["schedulingGates"] = {{{"name", api::kGangGate}}};
  auto replaced = std::make_shared<std::atomic<bool>>(false);
  api_->SetBefore([this, replaced, stranger](const Call& call) {
    if (!LiftsGates(call) || call.name != "b-worker-0" || replaced->exchange(true)) return;
    Replace("b-worker-0", stranger);
  });
  ASSERT_NO_FATAL_FAILURE(GiveRoomFor(4));
  ASSERT_TRUE(Until([&] { return IsAdmitted("b-worker-1"); }));
  ASSERT_TRUE(Until([&] { return HowGatesWereLifted("b-worker-0").has_value(); }));
  EXPECT_FALSE(*HowGatesWereLifted("b-worker-0"));
  EXPECT_TRUE(IsGated("b-worker-0"));
}

// ---- Which pods are released.

TEST_F(RacesTest, AnotherPodOfThatNameIsNotLetGo) {
  const std::string other = AnotherJob();
  Apply();
  ASSERT_TRUE(Trains(2));
  const Json stranger = Stranger("digits-worker-1", "other", other);
  // The job ends: pod 0 is deleted and, in the reconcile after that, both pods are released. In
  // between pod 1 is replaced by another one.
  auto tries = std::make_shared<std::atomic<int>>(0);
  const auto ours = [](const Call& call) {
    return call.verb == "delete" && call.resource == "pods" && call.body != "" &&
           call.name == "digits-worker-0";
  };
  api_->SetBefore([this, tries, ours, stranger](const Call& call) {
    if (ours(call) && ++*tries == 2) Replace("digits-worker-1", stranger);
  });
  api_->SetRefuse([tries, ours](const Call& call) -> std::optional<ErrorCode> {
    return ours(call) && *tries == 1 ? std::optional(ErrorCode::kUnavailable) : std::nullopt;
  });
  cluster_->EndPod("digits-worker-1", 1);
  ASSERT_TRUE(Until([&] { return Get(kube::Pods(), "digits-worker-0").is_null() && IsIdle(); }));
  EXPECT_GE(*tries, 2);
  EXPECT_TRUE(HasFinalizer(Get(kube::Pods(), "digits-worker-1")));
}

TEST_F(RacesTest, ATemplateThatWasChangedWhileNobodyLookedIsThatOfAllPods) {
  Apply();
  ASSERT_TRUE(Trains(2));
  controller_->Stop();
  Change({{"runPolicy", {{"suspend", true}}},
          {"worker", {{"template", {{"metadata", {{"labels", {{"version", "2"}}}}}}}}}});
  Change({{"runPolicy", {{"suspend", false}}}});
  StartOperator();
  ASSERT_TRUE(Until([&] {
    const auto members = cluster_->Members();
    return Status().state == "Running" && members.size() == 2 &&
           std::all_of(members.begin(), members.end(), [&](const std::string& name) {
             const Json pod = Get(kube::Pods(), name);
             return !pod.is_null() && pod["metadata"]["labels"].value("version", "") == "2";
           });
  }));
  EXPECT_EQ(membership::EpochLineage(Status().epoch), 2u);
  EXPECT_EQ(Status().restarts_from_checkpoint, 1) << "as after a suspension that was seen";
  const auto events = api_->Calls("create", "events");
  for (const char* reason : {"Suspended", "Resumed"}) {
    EXPECT_TRUE(std::any_of(events.begin(), events.end(), [&](const Call& event) {
      return event.body.value("reason", "") == reason;
    })) << reason;
  }
}

TEST_F(RacesTest, PodsOfAJobThatTheCacheDoesNotKnowYetAreNoOrphans) {
  auto held = std::make_shared<std::atomic<bool>>(true);
  api_->SetHeld(
      [held](const kube::Resource& resource, const std::string&, const kube::WatchOptions&) {
        return *held && resource == kube::HorovodJobs();
      });
  const Json young = Apply("young", {{"runPolicy", {{"managedBy", "example.com/another"}}}});
  const std::string uid = runtime::MetaField(young, "uid");
  ASSERT_TRUE(api_->Create(kube::Pods(), "default", Stranger("young-worker-7", "young", uid)));
  ASSERT_TRUE(Until([&] { return !api_->Calls("get", "horovodjobs").empty() && IsIdle(); }));
  EXPECT_TRUE(controller_->Jobs().empty());
  EXPECT_TRUE(HasFinalizer(Get(kube::Pods(), "young-worker-7")));
  *held = false;
  EXPECT_TRUE(Until([&] { return !controller_->Jobs().empty(); }));
}

// ---- A lineage begins.

class LineageTest : public RacesTest {
 protected:
  void SetUp() override {
    uid_ = runtime::MetaField(Apply(), "uid");
    ASSERT_TRUE(Trains(2));
  }
  void MoveTheRecord() {
    const JobIdentity job = {"default", "digits", uid_};
    // The lineage is written into the job's status, which the controller may be writing, too.
    ASSERT_TRUE(Until([&] {
      return records_->BeginRecovery(job, 2, (*records_->Newest(job))->view).has_value();
    }));
  }
  void BeginALineage() {
    ASSERT_NO_FATAL_FAILURE(MoveTheRecord());
    Touch();
  }
  void Touch() {
    ASSERT_TRUE(store_api_.Patch(kube::HorovodJobs(), "default", "digits",
                                 {{"metadata", {{"annotations", {{"n", "1"}}}}}}, {}));
  }
  // The pod as if the kubelet had ended it.
  Json Dead(const std::string& name) {
    Json pod = Get(kube::Pods(), name);
    for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
      for (Json& container : pod["status"][list]) {
        container["state"] = {{"terminated", {{"exitCode", 137}}}};
      }
    }
    return pod;
  }
  std::size_t Looks() {
    std::size_t looks = 0;
    for (const Call& call : api_->Calls("list", "pods")) {
      looks += call.name.find(api::kJobUidLabel) != std::string::npos ? 1 : 0;
    }
    return looks;
  }
  std::uint64_t Lineage() {
    const auto record = records_->Newest({"default", "digits", uid_});
    return record && *record ? membership::EpochLineage((*record)->view->epoch) : 0;
  }
  std::string uid_;
};

TEST_F(LineageTest, ItBeginsWithThoseWhoAreListedOrNotAtAll) {
  api_->SetExtraPods({Dead("digits-worker-1")});
  ASSERT_NO_FATAL_FAILURE(BeginALineage());
  ASSERT_TRUE(Until([&] { return Looks() >= 3; }));
  EXPECT_EQ(Lineage(), 1u) << "with pod 1 in the view";
  api_->SetExtraPods({Dead("digits-worker-0"), Dead("digits-worker-1")});
  const std::size_t before = Looks();
  ASSERT_TRUE(Until([&] { return Looks() >= before + 3; }));
  EXPECT_EQ(Lineage(), 1u) << "no pod that lives reports";
  api_->SetExtraPods({});
  EXPECT_TRUE(Until([&] { return Lineage() == 2; }));
  EXPECT_TRUE(Trains(2));
}

TEST_F(LineageTest, ItDoesNotBeginWhereThePodsCanNotBeListed) {
  api_->SetRefuse([](const Call& call) -> std::optional<ErrorCode> {
    const bool look = call.verb == "list" && call.resource == "pods" &&
                      call.name.find(api::kJobUidLabel) != std::string::npos;
    return look ? std::optional(ErrorCode::kUnavailable) : std::nullopt;
  });
  ASSERT_NO_FATAL_FAILURE(BeginALineage());
  ASSERT_TRUE(Until([&] { return Looks() >= 3; }));
  EXPECT_EQ(Lineage(), 1u);
  api_->SetRefuse(nullptr);
  EXPECT_TRUE(Until([&] { return Lineage() == 2; }));
}

TEST_F(LineageTest, AnOperatorThatHasJustBegunToLeadCallsNobodySilent) {
  controller_->Stop();
  ASSERT_NO_FATAL_FAILURE(MoveTheRecord());
  ASSERT_NO_FATAL_FAILURE(StartOperatorAlone());
  Change({{"worker", {{"replicas", 3}}}});
  ASSERT_TRUE(Until([&] { return Status().observed_generation == 2; }));
  const api::Status status = Status();
  const api::Condition* rebuilding = status.Find("Rebuilding");
  EXPECT_FALSE(rebuilding != nullptr && rebuilding->reason == "WaitingForProof");
  cluster_->MoveTo(registry_.get());
  EXPECT_TRUE(Until([&] { return Lineage() == 2; }));
}

}  // namespace
}  // namespace ringmaster::controllers
