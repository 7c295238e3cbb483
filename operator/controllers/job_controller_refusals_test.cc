// What the API server refuses is tried again without any other change, and what it has accepted is
// known without waiting for the watch.
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
using ::testing::HasSubstr;
using testing::JobControllerCallsTest;

constexpr int kRefusals = 6;  // more than the reconciles for other reasons

class RefusalsTest : public JobControllerCallsTest {
 protected:
  void TearDown() override { controller_->Stop(); }  // before the members that its calls use

  // Selects calls by verb and resource, by name if it is set, and by a text in the body.
  struct Which {
    std::string verb, resource, name, has;
    bool Is(const Call& call) const {
      return call.verb == verb && call.resource == resource &&
             (name.empty() || call.name == name) &&
             (has.empty() || call.body.contains(Json::json_pointer(has)));
    }
  };
  void RefuseSome(const Which& which, ErrorCode code = ErrorCode::kUnavailable) {
    tries_ = 0;
    api_->SetRefuse([this, which, code](const Call& call) -> std::optional<ErrorCode> {
      if (!which.Is(call) || ++tries_ > kRefusals) return std::nullopt;
      return code;
    });
  }
  bool IsTriedUntilItGoesWell() {
    return Until([&] { return tries_ > kRefusals; });
  }
  std::size_t Count(const Which& which) {
    const auto calls = api_->Calls(which.verb, which.resource);
    return std::count_if(calls.begin(), calls.end(),
                         [&](const Call& call) { return which.Is(call); });
  }
  bool IsIdle() { return controller_->state().queue.depth == 0; }
  bool IsThere(const std::string& pod) { return !Get(kube::Pods(), pod).is_null(); }

  std::atomic<int> tries_ = 0;
  const Json gated_ = {
      {"worker",
       {{"template", {{"spec", {{"schedulingGates", {{{"name", "example.com/not-yet"}}}}}}}}}}};
};

TEST_F(RefusalsTest, PodsAreMade) {
  RefuseSome({"create", "pods"});
  Apply();
  EXPECT_TRUE(IsTriedUntilItGoesWell());
  EXPECT_TRUE(Trains(2));
}

TEST_F(RefusalsTest, MarksAndStatusAreWritten) {
  RefuseSome({"patch", "pods", "digits-worker-1", "/metadata/annotations"});
  Apply();
  EXPECT_TRUE(IsTriedUntilItGoesWell());
  ASSERT_TRUE(Trains(2));
  ASSERT_TRUE(Until([&] { return IsIdle(); }));
  RefuseSome({"update", "horovodjobs"});
  Change({{"runPolicy", {{"suspend", true}}}});
  EXPECT_TRUE(IsTriedUntilItGoesWell());
  EXPECT_TRUE(Until([&] { return Status().state == "Suspended"; }));
}

TEST_F(RefusalsTest, ExitsThatOneOperatorCouldNotCountTheNextOneCounts) {
  Apply();
  ASSERT_TRUE(Trains(2));
  ASSERT_TRUE(Until([&] { return IsIdle(); }));
  api_->SetRefuse([this](const Call& call) -> std::optional<ErrorCode> {
    if (!Which{"update", "horovodjobs", "", ""}.Is(call)) return std::nullopt;
    ++tries_;
    return ErrorCode::kUnavailable;
  });
  cluster_->RestartWorker("digits-worker-0", 139);
  ASSERT_TRUE(Until([&] { return tries_ >= 3; }));
  StartOperator();
  api_->SetRefuse(nullptr);
  ASSERT_TRUE(Until([&] { return Status().worker_restarts == 1; }));
  StartOperator();  // it hears of that exit, too
  cluster_->RestartWorker("digits-worker-1", 137);
  ASSERT_TRUE(Until([&] { return Status().counted_exits.size() == 2; }));
  EXPECT_EQ(Status().worker_restarts, 2);
  EXPECT_EQ(Status().faults, 1);
}

// Who hears that all leave does so, whatever is decided afterwards.
TEST_F(RefusalsTest, NobodyHearsOfASuspensionThatIsTakenBackBeforeItIsWritten) {
  Apply();
  ASSERT_TRUE(Trains(2));
  ASSERT_TRUE(Until([&] { return IsIdle(); }));
  const Json before = Get(kube::Pods(), "digits-worker-0");
  api_->SetRefuse([this](const Call& call) -> std::optional<ErrorCode> {
    if (!Which{"update", "horovodjobs", "", ""}.Is(call)) return std::nullopt;
    ++tries_;
    return ErrorCode::kUnavailable;
  });
  Change({{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(Until([&] { return tries_ >= 3; }));
  Change({{"runPolicy", {{"suspend", false}}}});
  api_->SetRefuse(nullptr);
  ASSERT_TRUE(Until([&] { return Status().observed_generation == 3; }));
  EXPECT_TRUE(Trains(2));
  for (const char* pod : {"digits-worker-0", "digits-worker-1"}) {
    EXPECT_FALSE(cluster_->WasTold(pod, "Drain")) << pod;
  }
  EXPECT_EQ(runtime::MetaField(Get(kube::Pods(), "digits-worker-0"), "uid"),
            runtime::MetaField(before, "uid"));
}

TEST_F(RefusalsTest, APodThatIsOneTooManyIsDeletedAndLetGo) {
  Apply("digits", {{"worker", {{"replicas", 3}}}});
  ASSERT_TRUE(Trains(3));
  RefuseSome({"delete", "pods", "digits-worker-2"});
  Change({{"worker", {{"replicas", 2}}}});
  EXPECT_TRUE(IsTriedUntilItGoesWell());
  ASSERT_TRUE(Until([&] { return !IsThere("digits-worker-2"); }));
  RefuseSome({"patch", "pods", "digits-worker-1", "/metadata/finalizers"});
  cluster_->EndPod("digits-worker-1", 137);
  EXPECT_TRUE(IsTriedUntilItGoesWell());
  EXPECT_TRUE(Trains(2));
}

TEST_F(RefusalsTest, AJobWhoseTimeIsOverIsDeleted) {
  RefuseSome({"delete", "horovodjobs"});
  Apply("digits", {{"runPolicy", {{"ttlSecondsAfterFinished", 0}}}});
  ASSERT_TRUE(Trains(2));
  cluster_->EndPod("digits-worker-1", 1);
  EXPECT_TRUE(IsTriedUntilItGoesWell());
  EXPECT_TRUE(Until([&] { return Get(kube::HorovodJobs(), "digits").is_null(); }));
}

TEST_F(RefusalsTest, AJobThatWaitsStartsThoughItsDryRunsWereRefused) {
  StartOperator(true);
  RefuseSome({"create", "pods"}, ErrorCode::kForbidden);
  Apply();
  EXPECT_TRUE(IsTriedUntilItGoesWell());
  EXPECT_FALSE(IsThere("digits-worker-0")) << "there is no room";
  ASSERT_TRUE(Until([&] { return Status().Is("Created"); }));
  ASSERT_TRUE(api_->Create(kube::Nodes(), "",
                           {{"metadata", {{"name", "n"}}},
                            {"status", {{"allocatable", {{"cpu", "8"}, {"pods", "110"}}}}}}));
  EXPECT_TRUE(Trains(2));
}

TEST_F(RefusalsTest, OrphansAreLetGoThoughOtherJobsOrTheirOwnSuccessorLive) {
  Apply();
  ASSERT_TRUE(Trains(2));
  for (const std::string job : {"digits", "gone"}) {
    RefuseSome({"patch", "pods", job + "-orphan", "/metadata/finalizers"});
    ASSERT_TRUE(store_api_.Create(kube::Pods(), "default", Stranger(job + "-orphan", job, "")));
    EXPECT_TRUE(IsTriedUntilItGoesWell()) << job;
    EXPECT_TRUE(Until([&] { return !HasFinalizer(Get(kube::Pods(), job + "-orphan")); })) << job;
  }
}

TEST_F(RefusalsTest, PodsThatWereMadeWhileTheirJobWentAreCollected) {
  const std::string uid = runtime::MetaField(Apply("digits", gated_), "uid");
  ASSERT_TRUE(Until([&] { return IsThere("digits-worker-1"); }));
  const auto hold = [&](const Json& finalizers) {
    ASSERT_TRUE(store_api_.Patch(kube::Pods(), "default", "digits-worker-0",
                                 {{"metadata", {{"finalizers", finalizers}}}}, {}));
  };
  ASSERT_NO_FATAL_FAILURE(hold({api::kProofFinalizer, "example.com/mine"}));
  RefuseSome({"patch", "pods", "digits-worker-1", "/metadata/finalizers"});
  ASSERT_TRUE(
      api_->Delete(kube::HorovodJobs(), "default", "digits", {.propagation = "Foreground"}));
  EXPECT_TRUE(IsTriedUntilItGoesWell());
  ASSERT_TRUE(Until([&] { return !IsThere("digits-worker-1"); }));
  const Which collects = {"delete", "pods", "digits-worker-7"};
  RefuseSome(collects);
  const auto late =
      store_api_.Create(kube::Pods(), "default", Stranger("digits-worker-7", "digits", uid));
  ASSERT_TRUE(late);
  EXPECT_TRUE(IsTriedUntilItGoesWell());
  EXPECT_TRUE(Until([&] { return !IsThere("digits-worker-7"); }));
  int named = 0, unnamed = 0;
  for (const Call& call : api_->Calls("delete", "pods")) {
    if (call.name != "digits-worker-7") continue;
    named += call.body == runtime::MetaField(*late, "uid") ? 1 : 0;
    unnamed += call.body == "" ? 1 : 0;
  }
  EXPECT_GT(named, kRefusals);
  EXPECT_LE(unnamed, 1) << "the fake kubelet's own call";
  ASSERT_NO_FATAL_FAILURE(hold(nullptr));
  EXPECT_TRUE(Until([&] { return Get(kube::HorovodJobs(), "digits").is_null(); }));
}

// The garbage collector deletes its pods then.
TEST_F(RefusalsTest, AJobThatIsNotDeletedInTheForegroundLetsItsPodsGoAndDeletesNone) {
  Json job = JobNamed("digits", gated_);
  job["metadata"]["finalizers"] = {"example.com/mine"};
  ASSERT_TRUE(api_->Create(kube::HorovodJobs(), "default", job));
  ASSERT_TRUE(Until([&] { return IsThere("digits-worker-1"); }));
  ASSERT_TRUE(
      api_->Delete(kube::HorovodJobs(), "default", "digits", {.propagation = "Background"}));
  for (const char* pod : {"digits-worker-0", "digits-worker-1"}) {
    EXPECT_TRUE(Until([&] { return !HasFinalizer(Get(kube::Pods(), pod)); })) << pod;
  }
  ASSERT_TRUE(Until([&] { return IsIdle(); }));
  EXPECT_EQ(api_->Calls("delete", "pods").size(), 0u);
}

TEST_F(RefusalsTest, ANameThatBecomesFreeIsWaitedForWithoutNews) {
  ASSERT_TRUE(api_->Create(kube::Pods(), "default", Stranger("digits-worker-0", "other", "")));
  // The pod is gone when it is read.
  api_->SetRefuse([](const Call& call) -> std::optional<ErrorCode> {
    return call.verb == "get" && call.resource == "pods" ? std::optional(ErrorCode::kNotFound)
                                                         : std::nullopt;
  });
  const auto says = [&](const char* words) {
    const api::Status status = Status();
    const auto* created = status.Find("Created");
    return created != nullptr && created->message.find(words) != std::string::npos;
  };
  Apply();
  EXPECT_TRUE(Until([&] { return says("still ending"); }));
  EXPECT_EQ(Count({"create", "events", "", "/regarding/name"}), 0u);
  api_->SetRefuse(nullptr);
  EXPECT_TRUE(Until([&] { return says("already exists"); })) << "it stays in the way";
  EXPECT_TRUE(Until([&] { return Count({"create", "events"}) > 0; }));
}

TEST_F(RefusalsTest, ATroubleIsOverWhenNobodyWantsThePodAnyMore) {
  const Json taken = Stranger("digits-worker-2", "other", "");
  ASSERT_TRUE(api_->Create(kube::Pods(), "default", taken));
  Apply("digits", {{"worker", {{"replicas", 3}}}});
  const auto created = [&] {
    const api::Status status = Status();
    const auto* condition = status.Find("Created");
    return condition == nullptr ? api::Condition{} : *condition;
  };
  ASSERT_TRUE(Until([&] { return created().reason == "PodNameTaken"; }));
  Change({{"worker", {{"replicas", 2}}}});
  EXPECT_TRUE(Until([&] { return created().status; }));
}

TEST_F(RefusalsTest, ARecordThatAnotherOperatorHasJustMadeIsNoTrouble) {
  auto made = std::make_shared<std::atomic<bool>>(false);
  api_->SetBefore([this, made](const Call& call) {
    if (call.verb != "create" || call.resource != "configmaps" || made->exchange(true)) return;
    EXPECT_TRUE(store_api_.Create(kube::ConfigMaps(), "default", call.body));
  });
  Apply();
  ASSERT_TRUE(Trains(2));
  EXPECT_TRUE(*made);
  for (const Call& call : api_->Calls("create", "events")) {
    EXPECT_NE(call.body.value("reason", ""), "FailedRecord") << call.body;
  }
}

TEST_F(RefusalsTest, ALineageThatCanNotBeginIsSaidUnlessAnotherWasJustQuicker) {
  Apply();
  ASSERT_TRUE(Trains(2));
  const auto suspend = [&] {
    Change({{"runPolicy", {{"suspend", true}}}});
    ASSERT_TRUE(Until([&] {
      return Status().state == "Suspended" && !IsThere("digits-worker-0") &&
             !IsThere("digits-worker-1");
    }));
  };
  const auto failed = [&] {
    std::size_t events = 0;
    for (const Call& call : api_->Calls("create", "events")) {
      events += call.body.value("reason", "") == "FailedRecord" ? 1 : 0;
    }
    return events;
  };
  ASSERT_NO_FATAL_FAILURE(suspend());
  RefuseSome({"update", "configmaps"}, ErrorCode::kConflict);
  Change({{"runPolicy", {{"suspend", false}}}});
  EXPECT_TRUE(IsTriedUntilItGoesWell());
  ASSERT_TRUE(Trains(2));
  EXPECT_EQ(failed(), 0u);
  ASSERT_NO_FATAL_FAILURE(suspend());
  RefuseSome({"update", "configmaps"}, ErrorCode::kForbidden);
  Change({{"runPolicy", {{"suspend", false}}}});
  EXPECT_TRUE(IsTriedUntilItGoesWell());
  ASSERT_TRUE(Trains(2));
  EXPECT_TRUE(Until([&] { return failed() > 0; }));
  EXPECT_EQ(failed(), 1u) << "once, not for each try";
}

TEST_F(RefusalsTest, WhatItHasWrittenItKnowsWithoutBeingTold) {
  api_->SetHeld(
      [](const kube::Resource& resource, const std::string&, const kube::WatchOptions& options) {
        return resource == kube::Pods() && !options.label_selector.empty();
      });
  Apply();
  EXPECT_TRUE(Trains(2)) << "pods and their marks";
  EXPECT_EQ(Count({"create", "pods"}), 2u);
}

TEST_F(RefusalsTest, TheStatusThatItHasWrittenIsTheOneThatItGoesOnFrom) {
  auto held = std::make_shared<std::atomic<bool>>(false);
  api_->SetHeld(
      [held](const kube::Resource& resource, const std::string&, const kube::WatchOptions&) {
        return *held && resource == kube::HorovodJobs();
      });
  Apply();
  ASSERT_TRUE(Until([&] { return !controller_->Jobs().empty(); }));
  *held = true;
  EXPECT_TRUE(Trains(2));
}

TEST_F(RefusalsTest, APodThatGetsItsLabelsBackHasNoSuccessorBeforeTheCacheIsTold) {
  Apply();
  ASSERT_TRUE(Trains(2));
  auto held = std::make_shared<std::atomic<bool>>(false);
  api_->SetHeld([held](const kube::Resource& resource, const std::string&,
                       const kube::WatchOptions& options) {
    return *held && resource == kube::Pods() && !options.label_selector.empty();
  });
  const Which restores = {"patch", "pods", "digits-worker-0", "/metadata/labels"};
  api_->SetBefore([held, restores](const Call& call) {
    if (restores.Is(call)) *held = true;
  });
  const std::size_t creates = Count({"create", "pods"});
  ASSERT_TRUE(store_api_.Patch(kube::Pods(), "default", "digits-worker-0",
                               {{"metadata", {{"labels", {{api::kReplicaIndexLabel, nullptr}}}}}},
                               {}));
  ASSERT_TRUE(Until([&] { return Count(restores) > 0 && IsIdle(); }));
  EXPECT_EQ(Count({"create", "pods"}), creates);
  for (const Call& call : api_->Calls("patch", "pods")) {
    if (!restores.Is(call)) continue;
    EXPECT_NE(call.body["metadata"].value("uid", ""), "");
  }
  *held = false;
}

TEST_F(RefusalsTest, WhatWasToBeToldWhenTheOperatorStopsIsWrittenBefore) {
  auto stopping = std::make_shared<std::atomic<bool>>(false);
  api_->SetBefore([stopping](const Call& call) {
    if (call.resource == "events") (void)Until([&] { return stopping->load(); });
  });
  const std::vector<std::string> jobs = {"a", "b", "c", "d", "e", "f", "g", "h"};
  for (const std::string& job : jobs) Apply(job, gated_);
  ASSERT_TRUE(Until([&] {
    return IsIdle() && std::all_of(jobs.begin(), jobs.end(), [&](const std::string& job) {
             return IsThere(job + "-worker-1");
           });
  }));
  *stopping = true;
  controller_->Stop();
  EXPECT_GE(Count({"create", "events"}), jobs.size());
}

// The pod's name looks like one of the job's, or a sidecar of the job claims the pod.
TEST_F(RefusalsTest, PodsOfOthersKeepTheirLabels) {
  const std::string uid = runtime::MetaField(Apply(), "uid");
  ASSERT_TRUE(Trains(2));
  Json seen = Stranger("digits-worker-8", "other", ""), unseen = seen;
  unseen["metadata"]["name"] = "digits-worker-9";
  unseen["metadata"]["labels"][api::kJobRoleLabel] = "launcher";
  for (const Json& pod : {seen, unseen}) {
    ASSERT_TRUE(store_api_.Create(kube::Pods(), "default", pod));
  }
  (void)registry_->Connect({.job_namespace = "default",
                            .job_name = "digits",
                            .job_uid = uid,
                            .pod_name = "digits-worker-9",
                            .pod_uid = "nobody"},
                           nullptr);
  ASSERT_TRUE(Until([&] { return Count({"get", "pods", "digits-worker-9"}) > 0; }));
  Change({{"worker", {{"replicas", 3}}}});
  EXPECT_TRUE(Trains(3)) << "nothing waits for it";
  for (const Json& pod : {seen, unseen}) {
    const std::string name = runtime::MetaField(pod, "name");
    EXPECT_EQ(Get(kube::Pods(), name)["metadata"]["labels"], pod["metadata"]["labels"]) << name;
  }
}

TEST_F(RefusalsTest, ASidecarIsKnownByItsPodsNameItsUidAndTheJobThatOwnsIt) {
  const std::string uid = runtime::MetaField(Apply(), "uid");
  ASSERT_TRUE(Trains(2));
  const Json pod = Get(kube::Pods(), "digits-worker-0");
  const job::Registration own = {.job_namespace = "default",
                                 .job_name = "digits",
                                 .job_uid = uid,
                                 .pod_name = "digits-worker-0",
                                 .pod_uid = runtime::MetaField(pod, "uid")};
  EXPECT_TRUE(registry_->KnowsPodOf(own));
  for (std::string job::Registration::*claim :
       {&job::Registration::job_namespace, &job::Registration::job_uid,
        &job::Registration::pod_name, &job::Registration::pod_uid}) {
    job::Registration strange = own;
    strange.*claim = "another";
    EXPECT_FALSE(registry_->KnowsPodOf(strange)) << strange.pod_name << strange.pod_uid;
  }
  controller_->Stop();
  EXPECT_FALSE(registry_->KnowsPodOf(own)) << "nobody looks any more";
}

TEST_F(RefusalsTest, WhatAFormerJobOfTheNameHasSaidIsForgotten) {
  Apply();
  ASSERT_TRUE(Trains(2));
  (void)registry_->Connect({.job_namespace = "default",
                            .job_name = "digits",
                            .job_uid = "former",
                            .pod_name = "digits-worker-0",
                            .pod_uid = "former-pod"},
                           nullptr);
  EXPECT_TRUE(Until([&] { return registry_->Facts("former").sidecars.empty(); }));
}

}  // namespace
}  // namespace ringmaster::controllers
