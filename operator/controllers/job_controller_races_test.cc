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
  bool HasPods(const std::string& job) {
    return !Get(kube::Pods(), job + "-worker-0").is_null() &&
           !Get(kube::Pods(), job + "-worker-1").is_null();
  }
  bool HasNone(const std::string& job) {
    return Get(kube::Pods(), job + "-worker-0").is_null() &&
           Get(kube::Pods(), job + "-worker-1").is_null();
  }
  bool WaitsForRoom(const std::string& job) {
    const api::Status status = Status(job);
    const auto* scheduled = status.Find("Scheduled");
    return scheduled != nullptr && scheduled->reason == "WaitingForRoom";
  }

  static bool Makes(const Call& call, const std::string& job) {
    return call.verb == "create" && call.resource == "pods" && !call.dry_run &&
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
  EXPECT_TRUE(Until([&] { return WaitsForRoom("b"); }));
  *open = true;
  ASSERT_TRUE(Until([&] { return HasPods("a"); }));
  EXPECT_TRUE(HasNone("b"));
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
  EXPECT_TRUE(Until([&] { return HasPods("b"); }));
}

TEST_F(GangRacesTest, WhoIsGrantedRoomTakesItBeforeTheCacheKnows) {
  api_->SetHeld(
      [](const kube::Resource& resource, const std::string& ns, const kube::WatchOptions& options) {
        return resource == kube::Pods() && ns.empty() && options.label_selector.empty();
      });
  ASSERT_NO_FATAL_FAILURE(StartWithRoomFor(2));
  Apply("a");
  ASSERT_TRUE(Until([&] { return HasPods("a"); }));
  Apply("b");
  EXPECT_TRUE(Until([&] { return WaitsForRoom("b"); }));
  EXPECT_TRUE(HasNone("b"));
}

// An operator of an earlier version has made them with its gate.
TEST_F(GangRacesTest, GatedPodsOfAnEarlierOperatorGiveWayToOthers) {
  ASSERT_NO_FATAL_FAILURE(StartWithRoomFor(1));
  const std::string uid = runtime::MetaField(Apply("b"), "uid");
  ASSERT_TRUE(Until([&] { return WaitsForRoom("b"); }));
  Json gated = Stranger("b-worker-7", "b", uid);
  gated["spec"]["schedulingGates"] = {{{"name", api::kGangGate}}};
  ASSERT_TRUE(store_api_.Create(kube::Pods(), "default", gated));
  EXPECT_TRUE(Until([&] { return Get(kube::Pods(), "b-worker-7").is_null(); }));
  EXPECT_TRUE(HasNone("b"));
  ASSERT_TRUE(store_api_.Patch(kube::Nodes(), "", "n",
                               {{"status", {{"allocatable", {{"pods", "4"}}}}}},
                               {.subresource = "status"}));
  EXPECT_TRUE(Until([&] { return HasPods("b"); }));
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
