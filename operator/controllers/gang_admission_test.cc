#include "operator/controllers/gang_admission.h"

#include "operator/controllers/pod_facts.h"
#include "operator/controllers/testing/parts_fixture.h"
#include "tests/support/until.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

// A job of two pods that request a CPU each, and one node.
class GangAdmissionTest : public testing::PartsTest {
 protected:
  GangAdmissionTest() {
    job_.spec.worker.pod_template["spec"]["containers"][0]["resources"] = {
        {"limits", {{"cpu", "1"}}}};
    job_.spec.elastic_policy.min_replicas = 2;
    snapshot_.job = job_;
    snapshot_.now = std::chrono::system_clock::now();
  }
  void Cpus(int count) {
    loop_.OnNode({{"metadata", {{"name", "a"}}},
                  {"status", {{"allocatable", {{"cpu", std::to_string(count)}, {"pods", "10"}}}}}},
                 false);
  }
  static int Granted(const planner::Decision& decision) {
    return static_cast<int>(decision.creates.size());
  }

  std::vector<std::string> called_;
  AdmissionLoop loop_{[this](const std::string& job) { called_.push_back(job); }};
  GangAdmission::Surroundings Around() { return {&loop_, &pods_, &writer_, &backoff_}; }
  GangAdmission admission_{api_, Around(), {.counted = true}};
  planner::Snapshot snapshot_;
};

TEST_F(GangAdmissionTest, AJobThatItsQueueHasAdmittedStandsInNoLine) {
  Cpus(0);
  snapshot_.queue = kueue::QueueState{.queue = "gpus", .stage = kueue::Stage::kAdmitted};
  snapshot_.queue->pods = 2;
  snapshot_.queue->changes = std::make_shared<const kueue::PodChanges>();
  EXPECT_EQ(Granted(admission_.Plan(&snapshot_)), 2);
  EXPECT_FALSE(snapshot_.gang_fit);
}

TEST_F(GangAdmissionTest, PodsThatFitTogetherAreMadeAtOnceAndNobodyIsAskedForADryRun) {
  Cpus(2);
  const planner::Decision decision = admission_.Plan(&snapshot_);
  EXPECT_EQ(Granted(decision), 2);
  EXPECT_EQ(decision.least_creates, 2);
  EXPECT_EQ(snapshot_.gang_fit->fit, 2);
  EXPECT_EQ(api_->dry_runs, 0);
}

TEST_F(GangAdmissionTest, HalfAGangIsNotMadeAndTakesNoQuota) {
  Cpus(1);
  const planner::Decision decision = admission_.Plan(&snapshot_);
  EXPECT_EQ(Granted(decision), 0);
  EXPECT_EQ(decision.kept_back, 2);
  EXPECT_EQ(snapshot_.gang_fit->tried, 1);
  EXPECT_TRUE(api_->ListAll(kube::Pods(), "default", {})->items.empty());
}

// The admission plugins of the cluster decide what a pod takes and how important it is.
TEST_F(GangAdmissionTest, AJobThatWaitsIsCountedAsItWouldBeStored) {
  api_->SetAdmission(Json::parse(R"({"spec": {"containers": [{"name": "worker", "image": "i",
      "command": ["train"], "resources": {"requests": {"cpu": "2"}}}]}})"));
  Cpus(0);
  EXPECT_EQ(Granted(admission_.Plan(&snapshot_)), 0);
  Cpus(2);
  loop_.Start();
  ASSERT_TRUE(support::Until([&] {
    planner::Snapshot again = snapshot_;
    (void)admission_.Plan(&again);
    return again.gang_fit->decided && again.gang_fit->tried == 1;
  })) << "two would fit by the template";
  loop_.Stop();
  Cpus(4);
  EXPECT_EQ(Granted(admission_.Plan(&snapshot_)), 2);
}

TEST_F(GangAdmissionTest, TheStatusOfAJobThatWaitsSaysHowImportantItsPodsWillBe) {
  EXPECT_EQ(admission_.Plan(&snapshot_).status.priority, std::nullopt) << "nobody has said";
  snapshot_.job.spec.pods_digest = "another";
  api_->SetAdmission({{"spec", {{"priority", 7}}}});
  EXPECT_EQ(admission_.Plan(&snapshot_).status.priority, 7);
}

TEST_F(GangAdmissionTest, TheApiServerIsAskedOnceForAJobThatGoesOnWaiting) {
  Cpus(0);
  for (int look = 0; look < 5; ++look) (void)admission_.Plan(&snapshot_);
  EXPECT_EQ(api_->dry_runs, 1);
  ++snapshot_.job.generation;
  for (int look = 0; look < 5; ++look) (void)admission_.Plan(&snapshot_);
  EXPECT_EQ(api_->dry_runs, 1) << "its pods are made from the same";
  snapshot_.job.spec.pods_digest = "another";
  for (int look = 0; look < 5; ++look) (void)admission_.Plan(&snapshot_);
  EXPECT_EQ(api_->dry_runs, 2);
}

TEST_F(GangAdmissionTest, AJobThatWaitsAndWhosePodsAreRefusedIsPausedAndSaysWhy) {
  Cpus(0);
  api_->refuses_dry_runs = true;
  const planner::Decision decision = admission_.Plan(&snapshot_);
  EXPECT_TRUE(snapshot_.creation_waits);
  EXPECT_EQ(decision.kept_back, 2);
  EXPECT_NE(decision.status.Find("Scheduled")->message.find("see condition Created"),
            std::string::npos);
  api::Status status;
  backoff_.Show(job_, false, "now", &status);
  EXPECT_EQ(status.Find("Created")->reason, "PodsForbidden");
  EXPECT_THAT(EventReasons(), ::testing::ElementsAre("FailedCreate"));
  EXPECT_EQ(queue_.size(), 1u) << "it comes back";
}

TEST_F(GangAdmissionTest, WhoseNodesWereNotFoundOnceIsCountedAsItWouldBeStoredFromTheBeginning) {
  Cpus(2);
  snapshot_.job.status.times_given_back = 1;
  snapshot_.job.status.last_given_back_time = api::FormatTime(snapshot_.now);
  api_->refused_verb = "create";
  api_->refusal = {.code = kube::ErrorCode::kUnavailable, .message = "away"};
  const planner::Decision decision = admission_.Plan(&snapshot_);
  EXPECT_EQ(Granted(decision), 0) << "nobody knows what they take";
  EXPECT_LE(*decision.look_again, std::chrono::seconds(5));
  api_->refused_verb = "";
  GangAdmission another(api_, Around(), {.counted = true});  // the pause is over
  EXPECT_EQ(Granted(another.Plan(&snapshot_)), 2);
  EXPECT_EQ(api_->dry_runs, 2);
}

TEST_F(GangAdmissionTest, PodsThatHaveToBeTogetherAreMadeForOneDomainAndLaterOnesFollow) {
  const auto node = [&](const std::string& name, const char* rack, const char* cpus) {
    loop_.OnNode({{"metadata", {{"name", name}, {"labels", {{"example.com/rack", rack}}}}},
                  {"status", {{"allocatable", {{"cpu", cpus}, {"pods", "10"}}}}}},
                 false);
  };
  snapshot_.job.spec.run_policy.scheduling_policy.topology = {"example.com/rack", true};
  node("a", "a", "1");
  node("b", "b", "2");
  const planner::Decision decision = admission_.Plan(&snapshot_);
  ASSERT_EQ(Granted(decision), 2);
  for (const planner::PodCreate& create : decision.creates) EXPECT_EQ(create.domain, "b");

  // Both were created, and one was lost: its replacement has no room in the same rack.
  planner::PodFacts there;
  there.name = "digits-worker-1";
  there.uid = "1";
  there.index = 1;
  there.node = "b";
  there.topology = "example.com/rack=b";
  snapshot_.pods = {there};
  snapshot_.gang_fit.reset();
  admission_.Forget(snapshot_.job.Key());
  node("a", "a", "9");
  node("b", "b", "0");
  EXPECT_EQ(Granted(admission_.Plan(&snapshot_)), 0);
  node("b", "b", "1");
  EXPECT_EQ(Granted(admission_.Plan(&snapshot_)), 1);
}

TEST_F(GangAdmissionTest, APodThatSomebodyElseGatesHoldsNothing) {
  Cpus(2);
  snapshot_.job.spec.worker.pod_template["spec"]["schedulingGates"] = {{{"name", "a/b"}}};
  EXPECT_EQ(Granted(admission_.Plan(&snapshot_)), 2);
  planner::Snapshot other = snapshot_;
  other.job.name = "other";
  other.job.spec.worker.pod_template["spec"].erase("schedulingGates");
  EXPECT_EQ(Granted(admission_.Plan(&other)), 2);
}

TEST_F(GangAdmissionTest, WhatIsHeldForAJobIsFreeWhenItIsForgotten) {
  Cpus(2);
  admission_.Plan(&snapshot_);
  planner::Snapshot other = snapshot_;
  other.job.name = "other";
  EXPECT_EQ(Granted(admission_.Plan(&other)), 0);
  admission_.Forget(snapshot_.job.Key());
  EXPECT_EQ(Granted(admission_.Plan(&other)), 2);
}

TEST_F(GangAdmissionTest, AJobWhosePodsAreRefusedLeavesItsRoomToOthersMeanwhile) {
  Cpus(2);
  EXPECT_EQ(Granted(admission_.Plan(&snapshot_)), 2);
  snapshot_.creation_waits = true;
  EXPECT_EQ(Granted(admission_.Plan(&snapshot_)), 0);
  planner::Snapshot other = snapshot_;
  other.job.name = "other";
  other.creation_waits = false;
  EXPECT_EQ(Granted(admission_.Plan(&other)), 2);
}

// One of the three has ended well and counts, one runs, and two are too few.
TEST_F(GangAdmissionTest, WhereNoSizeIsOfUseNobodySaysThatThereIsNoRoom) {
  Cpus(9);
  snapshot_.job.spec.worker.replicas = 3;
  snapshot_.job.spec.elastic_policy.min_replicas = 3;
  for (const int index : {0, 2}) {
    MakePod(index);
    snapshot_.pods.push_back(ReadPod(Pod(index)));
  }
  snapshot_.pods.back().phase = planner::PodPhase::kSucceeded;
  const planner::Decision decision = admission_.Plan(&snapshot_);
  EXPECT_TRUE(decision.creates.empty());
  ASSERT_NE(decision.status.Find("Scheduled"), nullptr);
  EXPECT_EQ(decision.status.Find("Scheduled")->reason, "WaitingForPods")
      << decision.status.Find("Scheduled")->message;
}

TEST_F(GangAdmissionTest, WhatIsForgottenKeepsThePlacesOfPodsThatAreThere) {
  Cpus(2);
  EXPECT_EQ(Granted(admission_.Plan(&snapshot_)), 2);
  MakePod(0);  // the capacity cache has not seen it yet
  admission_.Forget(snapshot_.job.Key());
  planner::Snapshot other = snapshot_;
  other.job.name = "other";
  EXPECT_EQ(Granted(admission_.Plan(&other)), 0);
  other.job.spec.elastic_policy.min_replicas = 1;
  EXPECT_EQ(Granted(admission_.Plan(&other)), 1);
}

// The two jobs have waited equally long, so the other comes
// first by name.
TEST_F(GangAdmissionTest, PodsThatAreNotMadeYetHaveThePriorityOfThoseThatAre) {
  MakePod(0, {{"spec", {{"priority", 7}}}});
  snapshot_.pods.push_back(ReadPod(Pod(0)));
  snapshot_.job.spec.elastic_policy.min_replicas = 1;
  Cpus(0);
  planner::Snapshot other = snapshot_;
  other.job.name = "before";
  other.job.uid = "another";
  for (planner::Snapshot* each : {&other, &snapshot_}) {
    EXPECT_EQ(Granted(admission_.Plan(each)), 0);
  }
  Cpus(1);
  loop_.Start();
  ASSERT_TRUE(support::Until([&] {
    planner::Snapshot again = snapshot_;
    return Granted(admission_.Plan(&again)) == 1;
  }));
  EXPECT_EQ(Granted(admission_.Plan(&other)), 0);
  loop_.Stop();
}

// Two jobs of a class below 0: the large one has waited when the small one comes. A job that is
// granted at once has the priority of its class.
class TwoOfALowClassTest : public GangAdmissionTest {
 protected:
  TwoOfALowClassTest() {
    small_ = snapshot_;
    snapshot_.job.spec.run_policy.scheduling_policy.priority_class = "low";
    small_.job = snapshot_.job;
    small_.job.name = "small";
    small_.job.uid = "another";
    small_.job.spec.elastic_policy.min_replicas = small_.job.spec.worker.replicas = 1;
    small_.now = snapshot_.now + std::chrono::minutes(10);
    Cpus(0);
    api_->SetAdmission({{"spec", {{"priority", -10}}}});
    EXPECT_EQ(Granted(admission_.Plan(&snapshot_)), 0);
    api_->SetAdmission(Json::object());  // it says nothing of the small one
  }
  void MakeClass() {
    const auto made = api_->Create(kube::PriorityClasses(), "",
                                   {{"metadata", {{"name", "low"}}}, {"value", -10}});
    ASSERT_TRUE(made) << made.error().message;
  }
  planner::Snapshot small_;
};

TEST_F(TwoOfALowClassTest, AJobWithoutPodsHasThePriorityOfItsClass) {
  ASSERT_NO_FATAL_FAILURE(MakeClass());
  EXPECT_EQ(Granted(admission_.Plan(&small_)), 0);
  Cpus(2);
  loop_.Start();
  ASSERT_TRUE(support::Until([&] {
    planner::Snapshot again = snapshot_;
    return Granted(admission_.Plan(&again)) == 2;
  })) << "the large one has waited longer";
  loop_.Stop();
}

TEST_F(GangAdmissionTest, AJobWithoutPodsAndClassHasThePriorityOfTheDefaultClass) {
  ASSERT_TRUE(
      api_->Create(kube::PriorityClasses(), "",
                   {{"metadata", {{"name", "usual"}}}, {"value", 1000}, {"globalDefault", true}}));
  planner::Snapshot young = snapshot_;
  young.job.name = "young";
  young.job.uid = "another";
  young.now = snapshot_.now + std::chrono::minutes(10);
  // Without a class it would be the later one of two with priority 0.
  snapshot_.job.spec.worker.pod_template["spec"]["priority"] = 0;
  Cpus(0);
  EXPECT_EQ(Granted(admission_.Plan(&snapshot_)), 0);
  EXPECT_EQ(Granted(admission_.Plan(&young)), 0);
  Cpus(2);
  loop_.Start();
  ASSERT_TRUE(support::Until([&] {
    planner::Snapshot again = young;
    return Granted(admission_.Plan(&again)) == 2;
  })) << "its pods will have the priority of the default class";
  loop_.Stop();
}

TEST_F(TwoOfALowClassTest, AJobWhoseClassCantBeReadAsksWhenADryRunHasToldItsPriority) {
  Cpus(4);
  EXPECT_EQ(Granted(admission_.Plan(&small_)), 0);
  EXPECT_FALSE(small_.gang_fit->decided);
  api_->SetAdmission({{"spec", {{"priority", -10}}}});
  small_.job.spec.pods_digest = "another";
  loop_.Start();
  ASSERT_TRUE(support::Until([&] {
    planner::Snapshot again = small_;
    return Granted(admission_.Plan(&again)) == 1;
  }));
  loop_.Stop();
}

// Two pods of the job run on all CPUs, and one of them would be enough; the other job needs one.
class PreemptionByClassTest : public GangAdmissionTest {
 protected:
  PreemptionByClassTest() {
    Cpus(2);
    snapshot_.job.spec.elastic_policy.min_replicas = 1;
    for (const int index : {0, 1}) Run(index);
    other_.job = snapshot_.job;
    other_.job.name = "other";
    other_.job.uid = "other-uid";
    other_.job.spec.worker.replicas = 1;
    other_.now = snapshot_.now;
    admission_.Plan(&snapshot_);
    loop_.Start();
  }
  ~PreemptionByClassTest() override { loop_.Stop(); }
  void Run(int index) {
    MakePod(index, Json::parse(R"({"spec": {"nodeName": "a", "containers": [{"name": "worker",
        "image": "i", "resources": {"requests": {"cpu": "1"}}}]}})"));
    snapshot_.pods.push_back(ReadPod(Pod(index)));
    loop_.OnPod(Pod(index), false);
  }
  // The other job waits, and the API server would store its pods so.
  void Wait(const Json& spec) { api_->SetAdmission({{"spec", spec}}, "other-"); }
  // Asks, lets a pass decide and asks again, because no pass is requested otherwise for a job
  // behind another one.
  bool Waits() {
    planner::Snapshot look = other_;
    admission_.Plan(&look);
    const auto pod = std::make_shared<const Json>(Json::parse(R"({"metadata": {"name": "last-0",
        "namespace": "default"}, "spec": {"containers": [{"name": "c", "resources": {"requests":
        {"cpu": "1"}}}]}})"));
    const std::string last = "default/last-" + std::to_string(++asked_);
    return support::Until(
        [&] { return loop_.Ask({.job = last, .pods = {pod}, .sizes = {1}}, {}).decided; });
  }
  std::vector<std::string> Drained() {
    std::vector<std::string> reasons;
    planner::Snapshot look = snapshot_;
    for (const auto& drain : admission_.Plan(&look).drains) {
      reasons.push_back(drain.name + " " + drain.reason);
    }
    return reasons;
  }
  std::vector<std::string> Demanded() {
    std::vector<std::string> uids;
    for (const auto& demand : loop_.DemandsOn(snapshot_.job.Key())) uids.push_back(demand.uid);
    return uids;
  }
  planner::Snapshot other_;
  int asked_ = 0;
};

TEST_F(PreemptionByClassTest, WhatHasYieldedIsCountedOnBeforeTheLineSeesItLeave) {
  Wait({{"priority", 7}});
  ASSERT_TRUE(Waits());
  EXPECT_THAT(Drained(), ::testing::ElementsAre("digits-worker-1 Preempted"));
  ASSERT_TRUE(Waits());
  EXPECT_THAT(Demanded(), ::testing::ElementsAre(snapshot_.pods[1].uid))
      << "the drain is decided, and not written";
  snapshot_.pods[1].drain_reason = "Preempted";
  snapshot_.pods[1].drain_since = snapshot_.now;
  EXPECT_THAT(Drained(), ::testing::IsEmpty());
  ASSERT_TRUE(Waits());
  EXPECT_THAT(Demanded(), ::testing::ElementsAre(snapshot_.pods[1].uid))
      << "it is written, and its watch event has yet to come";
}

TEST_F(PreemptionByClassTest, AJobOfHigherPriorityTakesWhatTheOtherCanDoWithout) {
  Wait({{"priority", 7}});
  ASSERT_TRUE(Waits());
  EXPECT_THAT(Drained(), ::testing::ElementsAre("digits-worker-1 Preempted"));
}

TEST_F(PreemptionByClassTest, NeverMeansNever) {
  Wait({{"priority", 7}, {"preemptionPolicy", "Never"}});
  ASSERT_TRUE(Waits());
  EXPECT_THAT(Drained(), ::testing::IsEmpty());
}

TEST_F(PreemptionByClassTest, AnUnknownPriorityTakesNothing) {
  MakePod(2, {{"spec", {{"nodeName", "a"}, {"priority", -5}}}});
  EXPECT_THAT(Drained(), ::testing::IsEmpty());  // now its priority is known
  Wait(Json::object());
  ASSERT_TRUE(Waits());
  EXPECT_THAT(Drained(), ::testing::IsEmpty());
}

TEST_F(PreemptionByClassTest, AJobWhosePodsWereGivenBackTwiceTakesNothing) {
  other_.job.status.times_given_back = 2;
  other_.job.status.last_given_back_time = api::FormatTime(other_.now - std::chrono::hours(1));
  Wait({{"priority", 7}});
  ASSERT_TRUE(Waits());
  EXPECT_THAT(Drained(), ::testing::IsEmpty());
}

TEST_F(PreemptionByClassTest, AJobWhosePodsADryRunShowsToBeRefusedTakesNothing) {
  Wait({{"priority", 7}});
  api_->refuses_dry_runs = true;
  ASSERT_TRUE(Waits());
  EXPECT_THAT(Demanded(), ::testing::IsEmpty());
}

TEST_F(PreemptionByClassTest, AJobKeepsWhatItHasAskedForWhenItsSizeChanges) {
  Wait({{"priority", 7}});
  ASSERT_TRUE(Waits());
  EXPECT_EQ(Demanded().size(), 1u);
  const int asked = api_->dry_runs;
  ++other_.job.generation;
  other_.job.spec.worker.replicas = 3;
  ASSERT_TRUE(Waits());
  EXPECT_EQ(Demanded().size(), 1u);
  EXPECT_EQ(api_->dry_runs, asked);
}

// A quota that has room for one of two pods lets the dry run of one through.
TEST_F(PreemptionByClassTest, AJobWhosePodsWereRefusedTakesNothingUntilTheyAreMadeOrChange) {
  Wait({{"priority", 7}});
  backoff_.Failed(other_.job, Needed::kPods, api_->refusal);
  ASSERT_TRUE(Waits());
  EXPECT_THAT(Demanded(), ::testing::IsEmpty());
  backoff_.PodsAreThere(other_.job);
  ASSERT_TRUE(Waits());
  EXPECT_EQ(Demanded().size(), 1u);
  backoff_.Failed(other_.job, Needed::kPods, api_->refusal);
  ASSERT_TRUE(Waits());
  EXPECT_THAT(Demanded(), ::testing::IsEmpty())
      << "what it had asked for is not asked for any more";
  ++other_.job.generation;
  ASSERT_TRUE(Waits());
  EXPECT_EQ(Demanded().size(), 1u);
}

TEST_F(PreemptionByClassTest, AnApiServerThatWasAwayIsNoReasonToTakeNothing) {
  Wait({{"priority", 7}});
  backoff_.Failed(other_.job, Needed::kPods,
                  {.code = kube::ErrorCode::kUnavailable, .http_status = 503, .message = "busy"});
  ASSERT_TRUE(Waits());
  EXPECT_EQ(Demanded().size(), 1u);
}

TEST_F(PreemptionByClassTest, WhatLeavesAlreadyIsNotTakenAgain) {
  Json leaves = Pod(1);
  leaves["metadata"]["annotations"] = {{api::kDrainAnnotation, "Requested"},
                                       {api::kDrainSinceAnnotation, api::FormatTime(other_.now)}};
  loop_.OnPod(leaves, false);
  Wait({{"priority", 7}});
  ASSERT_TRUE(Waits());
  EXPECT_THAT(Drained(), ::testing::IsEmpty());
}

TEST_F(GangAdmissionTest, AJobThatHasLackedRoomForLongCallsForNodes) {
  constexpr std::chrono::seconds kWithin{900};
  GangAdmission admission(api_, Around(), {.counted = true}, kWithin);
  loop_.SetNodeCallRules({.calls = true, .after = std::chrono::seconds(0), .jobs_at_once = 1});
  Cpus(1);
  EXPECT_EQ(Granted(admission.Plan(&snapshot_)), 0) << "since now, the line says";
  EXPECT_EQ(snapshot_.nodes_within, kWithin);
  loop_.Start();
  ASSERT_TRUE(support::Until([&] { return Granted(admission.Plan(&snapshot_)) == 2; }));
  loop_.Stop();
  EXPECT_TRUE(admission.Plan(&snapshot_).creates.front().calls_for_nodes);
}

TEST_F(GangAdmissionTest, AJobThatWasRefusedNodesCallsAgainAfterAPause) {
  GangAdmission admission(api_, Around(), {.counted = true}, std::chrono::seconds(900));
  loop_.SetNodeCallRules({.calls = true, .after = std::chrono::seconds(0), .jobs_at_once = 1});
  Cpus(1);
  snapshot_.requests = provisioning::Requests{.class_name = "c", .digest = "d"};
  loop_.Start();
  ASSERT_TRUE(support::Until([&] { return admission.Plan(&snapshot_).request.has_value(); }));
  EXPECT_EQ(admission.Plan(&snapshot_).request->count, 2);
  snapshot_.requests->own = {{.name = "r",
                              .class_name = "c",
                              .count = 2,
                              .digest = "d",
                              .created = snapshot_.now,
                              .stage = provisioning::RequestStage::kFailed,
                              .since = snapshot_.now}};
  ASSERT_TRUE(support::Until([&] {
    (void)admission.Plan(&snapshot_);
    return !snapshot_.gang_fit->calls_for_nodes;
  })) << "others have their turn";
  snapshot_.now += std::chrono::seconds(60);
  ASSERT_TRUE(support::Until([&] { return admission.Plan(&snapshot_).request.has_value(); }));
  loop_.Stop();
  EXPECT_EQ(admission.Plan(&snapshot_).request->attempt, 2);
}

TEST_F(GangAdmissionTest, AJobWhosePodsWereRefusedHasNoNodesBookedForThem) {
  GangAdmission admission(api_, Around(), {.counted = true}, std::chrono::seconds(900));
  loop_.SetNodeCallRules({.calls = true, .after = std::chrono::seconds(0), .jobs_at_once = 1});
  Cpus(1);
  snapshot_.requests = provisioning::Requests{.class_name = "c", .digest = "d"};
  backoff_.Failed(job_, Needed::kPods, api_->refusal);
  planner::Snapshot next = snapshot_;
  next.job.name = "next";
  next.job.uid = "next-uid";
  next.now += std::chrono::minutes(1);
  loop_.Start();
  ASSERT_TRUE(support::Until([&] {
    EXPECT_FALSE(admission.Plan(&snapshot_).request);
    return admission.Plan(&next).request.has_value();
  })) << "the next one has its turn";
  loop_.Stop();
}

TEST_F(GangAdmissionTest, ASuspendedJobHoldsNothing) {
  Cpus(2);
  admission_.Plan(&snapshot_);
  snapshot_.job.spec.run_policy.suspend = true;
  admission_.Plan(&snapshot_);
  planner::Snapshot other = snapshot_;
  other.job.name = "other";
  other.job.spec.run_policy.suspend = false;
  EXPECT_EQ(Granted(admission_.Plan(&other)), 2);
}

TEST_F(GangAdmissionTest, WhereNobodyCountsAllAreMade) {
  GangAdmission none(api_, {nullptr, &pods_, &writer_, &backoff_}, {});
  EXPECT_EQ(Granted(none.Plan(&snapshot_)), 2);
  EXPECT_FALSE(snapshot_.gang_fit.has_value());
}

}  // namespace
}  // namespace ringmaster::controllers
