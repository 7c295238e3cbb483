#include "operator/planner/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "operator/api/labels.h"
#include "operator/planner/testing/world.h"

namespace ringmaster::planner {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(PlannerTest, ANewJobGetsAllItsPods) {
  World world(3);
  const Decision out = Plan(world.in);
  EXPECT_THAT(Created(out), ElementsAre(0, 1, 2));
  EXPECT_TRUE(out.status.Is("Created"));
  EXPECT_EQ(out.status.state, "Pending");
  EXPECT_EQ(out.status.start_time, "2026-01-31T12:00:00Z");
  EXPECT_EQ(out.status.replicas, 0);
}

TEST(PlannerTest, NothingIsDoneTwiceWhenNothingChanged) {
  World world = World::Training(3);
  const Decision out = Plan(world.in);
  EXPECT_THAT(out.creates, IsEmpty());
  EXPECT_THAT(out.drains, IsEmpty());
  EXPECT_THAT(out.deletes, IsEmpty());
  EXPECT_THAT(out.events, IsEmpty());
  EXPECT_EQ(out.status, world.in.job.status);
}

TEST(PlannerTest, TheFirstViewIsMadeAtOnceWhenAllAreReady) {
  World world(2);
  world.Running(0).Ready(0).Running(1).Ready(1);
  const Decision out = Plan(world.in);
  ASSERT_NE(out.first_view, nullptr);
  EXPECT_EQ(out.first_view->epoch, membership::MakeEpoch(1, 1));
  EXPECT_EQ(out.first_view->pods.size(), 2u);
}

TEST(PlannerTest, WithMinReplicasReadyTheOthersAreWaitedForAShortTime) {
  World world(3);
  world.in.job.spec.elastic_policy.min_replicas = 2;
  world.Running(0).Ready(0).Running(1).Ready(1).Running(2).Connected(2);
  Decision out = Plan(world.in);
  EXPECT_EQ(out.first_view, nullptr);
  ASSERT_TRUE(out.look_again);
  EXPECT_LE(*out.look_again, kSettle + std::chrono::milliseconds(100));
  world.in.now += kSettle;
  out = Plan(world.in);
  ASSERT_NE(out.first_view, nullptr);
  EXPECT_EQ(out.first_view->pods.size(), 2u);
}

TEST(PlannerTest, BelowMinReplicasNoViewIsMade) {
  World world(3);
  world.in.job.spec.elastic_policy.min_replicas = 2;
  world.Running(0).Ready(0).Running(1).Connected(1);
  world.in.now += seconds(60);
  EXPECT_EQ(Plan(world.in).first_view, nullptr);
}

TEST(PlannerTest, AJoinerLearnsTheNewestViewAndMembersDoNot) {
  World world = World::Training(2);
  world.in.job.spec.worker.replicas = 3;
  world.Running(2).Ready(2);
  EXPECT_THAT(Told<ViewDecidedNotice>(Plan(world.in)), IsEmpty()) << "first its address on its pod";
  world.Pod(2).http = world.Sidecar(2).http_address;
  const Decision out = Plan(world.in);
  EXPECT_THAT(Told<ViewDecidedNotice>(out), ElementsAre("uid-2"));
  EXPECT_THAT(Told<TargetNotice>(out), ElementsAre("uid-0", "uid-1", "uid-2"));
}

TEST(PlannerTest, MembersOfTheFirstViewAreToldUntilTheyHaveInstalledIt) {
  World world = World::Training(2);
  world.Sidecar(1).epoch = 0;
  EXPECT_THAT(Told<ViewDecidedNotice>(Plan(world.in)), ElementsAre("uid-1"));
}

TEST(PlannerTest, ScaleUpTakesTheLowestFreeIndexes) {
  World world = World::Training(3);
  world.in.job.spec.worker.replicas = 5;
  EXPECT_THAT(Created(Plan(world.in)), ElementsAre(3, 4));
}

TEST(PlannerTest, ScaleDownDrainsTheHighestIndexesFirst) {
  World world = World::Training(4);
  world.in.job.spec.worker.replicas = 2;
  const Decision out = Plan(world.in);
  EXPECT_THAT(Drained(out), ElementsAre("digits-worker-3", "digits-worker-2"));
  EXPECT_THAT(out.deletes, IsEmpty()) << "they leave the ring first";
  EXPECT_THAT(out.creates, IsEmpty());
}

TEST(PlannerTest, PodsThatDoNotTrainLeaveBeforeThoseThatDo) {
  World world = World::Training(2);
  world.Pending(2).Pending(3);
  world.in.job.spec.worker.replicas = 1;
  EXPECT_THAT(Drained(Plan(world.in)),
              ElementsAre("digits-worker-3", "digits-worker-2", "digits-worker-1"));
  // The pod with the lowest index was lost, and its successor finds no node: a training pod must
  // not be deleted in its favour.
  world = World::Training(2);
  world.Remove(0).Pending(0);
  world.Pod(0).uid = "uid-of-the-successor";
  std::swap(world.in.pods[0], world.in.pods[1]);
  world.in.job.spec.worker.replicas = 1;
  EXPECT_THAT(Drained(Plan(world.in)), ElementsAre("digits-worker-0"));
}

TEST(PlannerTest, PodsThatFindNoNodeDoNotHoldUpTheOthers) {
  World world(4);
  world.in.job.spec.elastic_policy.min_replicas = 2;
  world.in.job.spec.init_timeout_seconds = 60;
  world.Running(0).Ready(0).Running(1).Ready(1).Pending(2).Pending(3);
  for (const int index : {2, 3})
    world.Pod(index).waiting = "Unschedulable: 0/2 nodes are available";
  world.in.now += kSettle;
  ASSERT_NE(Plan(world.in).first_view, nullptr);
  EXPECT_EQ(Plan(world.in).first_view->pods.size(), 2u);
  world.View(1, 2).Settle();
  world.in.now += seconds(3600);
  Decision out = Plan(world.in);
  EXPECT_EQ(out.status.state, "Running");
  EXPECT_FALSE(out.status.Is("Failed")) << "a pod without a node can't come to init()";
  EXPECT_THAT(out.status.Find("Scheduled")->message, HasSubstr("pods with a node: 2 of 4"));
  EXPECT_THAT(out.status.Find("Scheduled")->message, HasSubstr("digits-worker-3: Unschedulable"));
  EXPECT_THAT(out.creates, IsEmpty());
  EXPECT_THAT(out.deletes, IsEmpty());
  // The pod gets a node and joins at once, whatever resizeIntervalSeconds is.
  world.Ready(2);
  world.Pod(2).phase = PodPhase::kRunning;
  world.Pod(2).http = world.Sidecar(2).http_address;
  EXPECT_THAT(Told<ViewDecidedNotice>(Plan(world.in)), ElementsAre("uid-2"));
}

TEST(PlannerTest, ADrainedPodIsReplacedAtOnceAndDeletedWhenItHasLeftTheView) {
  World world = World::Training(3);
  world.Pod(1).drain_reason = "maintenance";
  world.Pod(1).drain_since = kNow;
  Decision out = Plan(world.in);
  EXPECT_THAT(Created(out), ElementsAre(3));
  EXPECT_THAT(out.deletes, IsEmpty());
  EXPECT_THAT(Told<DrainNotice>(out), ElementsAre("uid-0", "uid-1")) << "coordinator and pod";
  membership::View left = *world.in.view;
  left.epoch += 1;
  left.pods.erase(left.pods.begin() + 1);
  left.ranks = {{.pod = 0}, {.pod = 1}};
  world.in.view = std::make_shared<const membership::View>(left);
  out = Plan(world.in);
  EXPECT_THAT(Deleted(out), ElementsAre("digits-worker-1"));
}

TEST(PlannerTest, ADrainMarkedByHandGetsItsTime) {
  World world = World::Training(2);
  world.Pod(1).drain_reason = "by hand";
  EXPECT_THAT(Drained(Plan(world.in)), ElementsAre("digits-worker-1"));
}

TEST(PlannerTest, ADrainThatHangsEndsWithItsGrace) {
  World world = World::Training(2);
  world.Pod(1).drain_reason = "x";
  world.Pod(1).drain_since = kNow;
  world.in.now += seconds(29);
  Decision out = Plan(world.in);
  EXPECT_THAT(out.deletes, IsEmpty());
  EXPECT_TRUE(out.look_again);
  world.in.now += seconds(1);
  EXPECT_THAT(Deleted(Plan(world.in)), ElementsAre("digits-worker-1"));
}

TEST(PlannerTest, ADeletedPodIsReplacedWhileItStillGoes) {
  World world = World::Training(2);
  world.Pod(0).deleting = true;
  const Decision out = Plan(world.in);
  EXPECT_THAT(Created(out), ElementsAre(2));
  EXPECT_THAT(out.deletes, IsEmpty());
}

struct EndCase {
  std::string name;
  int exit_code;
  std::string reason;
  bool fails_job;
  int faults;
};

class PodEnd : public testing::TestWithParam<EndCase> {};

TEST_P(PodEnd, IsEvaluatedByItsCause) {
  World world = World::Training(3);
  world.End(1, PodPhase::kFailed, GetParam().exit_code, GetParam().reason);
  const Decision out = Plan(world.in);
  EXPECT_EQ(out.status.Is("Failed"), GetParam().fails_job);
  EXPECT_EQ(out.status.faults, GetParam().faults);
  if (GetParam().fails_job) {
    EXPECT_THAT(out.status.Find("Failed")->message, HasSubstr("digits-worker-1"));
    EXPECT_THAT(Deleted(Plan(world.Settle().in)),
                ElementsAre("digits-worker-0", "digits-worker-2"));
  } else {
    EXPECT_THAT(Created(out), ElementsAre(3));
    EXPECT_EQ(out.status.pods_replaced, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(PlannerTest, PodEnd,
                         testing::Values(EndCase{"Killed", 137, "", false, 0},
                                         EndCase{"Terminated", 143, "", false, 0},
                                         EndCase{"Evicted", 137, "Evicted", false, 0},
                                         EndCase{"OutOfMemory", 137, "OOMKilled", false, 1},
                                         EndCase{"SegmentationFault", 139, "", false, 1},
                                         EndCase{"ExitsWithOne", 1, "", true, 1},
                                         EndCase{"ExitsWithMinusOne", 255, "", true, 1}),
                         [](const auto& info) { return info.param.name; });

TEST(PlannerTest, PodsThatFailBeforeTheirWorkerRunsAreNotReplacedForEver) {
  World world = World::Training(3);
  world.End(1, PodPhase::kFailed, 0);
  world.in.pods[1].exit_code.reset();
  const Decision out = Plan(world.in);
  EXPECT_EQ(out.status.faults, 1);
  EXPECT_EQ(out.status.pods_replaced, 1);
}

TEST(PlannerTest, APodThatEndedFromOutsideIsToldAsThat) {
  World world = World::Training(3);
  world.End(1, PodPhase::kFailed, 0, "NodeLost");
  world.in.pods[1].exit_code.reset();  // no kubelet reported how its containers ended
  const Decision out = Plan(world.in);
  EXPECT_EQ(out.status.faults, 0);
  EXPECT_THAT(
      out.events,
      Contains(Field(&Event::message, HasSubstr("failed: it was ended from outside (NodeLost)"))));
}

TEST(PlannerTest, TheFirstRuleThatMatchesDecides) {
  World world = World::Training(2);
  auto& rules = world.in.job.spec.failure_policy.rules;
  rules = {{{3}, {}, api::FailureAction::kReplacePod}, {{3}, {}, api::FailureAction::kFailJob}};
  world.End(1, PodPhase::kFailed, 3);
  EXPECT_FALSE(Plan(world.in).status.Is("Failed"));
  rules.erase(rules.begin());
  EXPECT_TRUE(Plan(world.in).status.Is("Failed"));
}

TEST(PlannerTest, AnEndIsCountedOnceAndThenThePodMakesRoom) {
  World world = World::Training(2);
  world.End(1, PodPhase::kFailed, 139);
  Decision out = Plan(world.in);
  EXPECT_EQ(out.status.faults, 1);
  EXPECT_THAT(out.deletes, IsEmpty()) << "not before the status says that it was counted";
  world.in.job.status = out.status;
  out = Plan(world.in);
  EXPECT_EQ(out.status.faults, 1);
  EXPECT_THAT(Deleted(out), ElementsAre("digits-worker-1"));
}

TEST(PlannerTest, AMemberThatVanishedIsReportedToTheOthers) {
  World world = World::Training(3);
  world.Remove(2);
  Decision out = Plan(world.in);
  EXPECT_THAT(Told<PodsGoneNotice>(out), ElementsAre("uid-0", "uid-1"));
  EXPECT_THAT(Gone(out), ElementsAre(GonePod{"uid-2", "PodGone"}));
  EXPECT_THAT(Created(out), ElementsAre(2));
  EXPECT_EQ(out.status.state, "Rebuilding");
}

TEST(PlannerTest, OnlyTerminatedContainersAreProof) {
  World world = World::Training(3);
  world.End(2, PodPhase::kFailed, 137);
  for (const bool terminated : {true, false}) {
    world.Pod(2).all_terminated = terminated;
    world.Pod(2).proven_dead = terminated;
    world.in.job.status.proven_dead.clear();
    EXPECT_THAT(Gone(Plan(world.in)),
                ElementsAre(GonePod{"uid-2", terminated ? "Terminated" : "PodGone"}));
  }
}

TEST(PlannerTest, AMemberWhoseSidecarIsConnectedIsNotGoneThoughTheCacheLacksIt) {
  World world = World::Training(2);
  world.in.pods.pop_back();
  EXPECT_THAT(Gone(Plan(world.in)), IsEmpty());
}

TEST(PlannerTest, SucceedsWhenAllPodsOfTheLastViewEndedWithZero) {
  World world = World::Training(2);
  world.Sidecar(0).finished_epoch = world.in.view->epoch;
  Decision out = Plan(world.in);
  EXPECT_EQ(out.status.state, "Finishing");
  EXPECT_THAT(Told<FinishNotice>(out), ElementsAre("uid-0", "uid-1"));
  EXPECT_TRUE(out.status_first) << "who hears it may go, and then only the status tells of it";
  world.in.job.status = out.status;
  world.End(0, PodPhase::kSucceeded, 0);
  out = Plan(world.in);
  EXPECT_FALSE(out.status.Is("Succeeded"));
  EXPECT_THAT(out.creates, IsEmpty()) << "nothing is rebuilt";
  EXPECT_FALSE(out.status_first);
  world.in.job.status = out.status;
  world.End(1, PodPhase::kSucceeded, 0);
  out = Plan(world.in);
  EXPECT_TRUE(out.status.Is("Succeeded"));
  EXPECT_EQ(out.status.worker.succeeded, 2);
  EXPECT_FALSE(out.status.completion_time.empty());
}

TEST(PlannerTest, AnOperatorThatMissedTheEndStillSeesSuccess) {
  World world = World::Training(2);
  world.End(0, PodPhase::kSucceeded, 0).End(1, PodPhase::kSucceeded, 0);
  world.in.sidecars.clear();
  EXPECT_TRUE(Plan(world.in).status.Is("Succeeded"));
}

TEST(PlannerTest, ALonePodThatWasDeletedAndEndedWithZeroIsNoSuccess) {
  World world = World::Training(1);
  world.Pod(0).deleting = true;
  world.End(0, PodPhase::kSucceeded, 0);
  const Decision out = Plan(world.in);
  EXPECT_FALSE(out.status.Is("Succeeded"));
  EXPECT_THAT(Created(out), ElementsAre(1));
}

TEST(PlannerTest, ExitWithZeroWhileOthersTrainFailsTheJob) {
  World world = World::Training(2);
  world.End(1, PodPhase::kSucceeded, 0);
  Decision out = Plan(world.in);
  EXPECT_FALSE(out.status.Is("Failed"));
  EXPECT_TRUE(out.look_again);
  world.in.now += kFinishGrace;
  out = Plan(world.in);
  ASSERT_TRUE(out.status.Is("Failed"));
  EXPECT_EQ(out.status.Find("Failed")->reason, "WorkerEndedEarly");
}

TEST(PlannerTest, FaultsOverTheBackoffLimitFailTheJobAndKillsDoNot) {
  World world = World::Training(2);
  world.in.job.spec.run_policy.backoff_limit = 1;
  for (int i = 0; i < 5; ++i) world.in.exits.push_back({"digits-worker-0", 0, 137, true, false});
  EXPECT_FALSE(Plan(world.in).status.Is("Failed"));
  EXPECT_EQ(Plan(world.in).status.worker_restarts, 5);
  EXPECT_EQ(Plan(world.in).exits_counted, 5u);
  for (int i = 0; i < 2; ++i) world.in.exits.push_back({"digits-worker-0", 0, 139, true, false});
  const Decision out = Plan(world.in);
  ASSERT_TRUE(out.status.Is("Failed"));
  EXPECT_EQ(out.status.Find("Failed")->reason, "BackoffLimitExceeded");
}

TEST(PlannerTest, InitTimeoutNamesThePodsAndSlotsThatHaveNotCome) {
  World world(2);
  world.in.job.spec.elastic_policy.min_replicas = 2;
  world.Running(0).Ready(0).Running(1).Connected(1);
  EXPECT_THAT(Plan(world.in).status.Find("Running")->message,
              HasSubstr("digits-worker-1 (slot 0 has not called init())"));
  world.Sidecar(1).last_exit = 137;
  EXPECT_THAT(Plan(world.in).status.Find("Running")->message,
              HasSubstr("digits-worker-1 (slot 0 has not called init(); the last worker there was "
                        "ended by signal 9 (out of memory?))"));
  world.Sidecar(1).last_exit.reset();
  world.Sidecar(1).missing_slots = {0, 3};
  EXPECT_THAT(Plan(world.in).status.Find("Running")->message,
              HasSubstr("digits-worker-1 (slots 0, 3 have not called init())"));
  world.Sidecar(1).missing_slots = {0};
  world.in.now += seconds(600);
  const Decision out = Plan(world.in);
  ASSERT_TRUE(out.status.Is("Failed"));
  EXPECT_EQ(out.status.Find("Failed")->reason, "InitTimeout");
  EXPECT_THAT(out.status.Find("Failed")->message, HasSubstr("digits-worker-1 (slot 0"));
}

TEST(PlannerTest, ActiveDeadlineCountsFromTheStart) {
  World world = World::Training(1);
  world.in.job.spec.run_policy.active_deadline_seconds = 60;
  world.in.now += seconds(59);
  EXPECT_TRUE(Plan(world.in).look_again);
  world.in.now += seconds(1);
  EXPECT_EQ(Plan(world.in).status.Find("Failed")->reason, "DeadlineExceeded");
}

TEST(PlannerTest, BelowMinHoldsOrFailsAsThePolicySays) {
  World world = World::Training(2);
  membership::View held = *world.in.view;
  held.train = false;
  world.in.view = std::make_shared<const membership::View>(held);
  Decision out = Plan(world.in);
  EXPECT_EQ(out.status.state, "Held");
  EXPECT_FALSE(out.status.Is("Running"));
  world.in.job.spec.elastic_policy.on_below_min = api::OnBelowMin::kFailJob;
  EXPECT_EQ(Plan(world.in).status.Find("Failed")->reason, "BelowMinReplicas");
}

TEST(PlannerTest, AViewOfASizeThatIsNotAllowedIsNotBelowMinWhereFewerMayTrain) {
  World world = World::Training(3);
  world.in.job.spec.elastic_policy.allowed_sizes = {2, 4};
  world.in.job.spec.elastic_policy.on_below_min = api::OnBelowMin::kFailJob;
  membership::View held = *world.in.view;
  held.train = false;
  world.in.view = std::make_shared<const membership::View>(held);
  const Decision out = Plan(world.in);
  EXPECT_EQ(out.status.Find("Failed"), nullptr);
  ASSERT_NE(out.status.Find("Running"), nullptr);
  EXPECT_EQ(out.status.Find("Running")->reason, "Resizing");
  EXPECT_THAT(out.status.Find("Running")->message,
              testing::HasSubstr("2 of the pods go on, as allowedSizes says"));
  world.in.job.spec.elastic_policy.allowed_sizes = {4};
  EXPECT_EQ(Plan(world.in).status.Find("Failed")->reason, "BelowMinReplicas");
}

TEST(PlannerTest, TheStatusNamesNoViewBeforeItIsRecorded) {
  World world(2);
  world.Running(0).Running(1).Ready(0).Ready(1);
  const Decision out = Plan(world.in);
  ASSERT_NE(out.first_view, nullptr);
  EXPECT_EQ(out.status.epoch, 0u);
  EXPECT_EQ(out.status.world_size, 0);
  EXPECT_TRUE(out.status.ring.empty());
}

struct CleanCase {
  api::CleanPodPolicy policy;
  std::vector<std::string> deleted;
};

class CleanUpAfterTheEnd : public testing::TestWithParam<CleanCase> {};

TEST_P(CleanUpAfterTheEnd, FollowsThePolicy) {
  World world = World::Training(2);
  world.in.job.spec.run_policy.clean_pod_policy = GetParam().policy;
  world.End(1, PodPhase::kFailed, 1).Settle();
  EXPECT_EQ(Deleted(Plan(world.in)), GetParam().deleted);
}

INSTANTIATE_TEST_SUITE_P(
    PlannerTest, CleanUpAfterTheEnd,
    testing::Values(CleanCase{api::CleanPodPolicy::kRunning, {"digits-worker-0"}},
                    CleanCase{api::CleanPodPolicy::kAll, {"digits-worker-0", "digits-worker-1"}},
                    CleanCase{api::CleanPodPolicy::kNone, {}}));

TEST(PlannerTest, TheJobIsDeletedWhenItsTimeToLiveIsOver) {
  World world = World::Training(1);
  world.in.job.spec.run_policy.ttl_seconds_after_finished = 10;
  world.End(0, PodPhase::kFailed, 1).Settle();
  EXPECT_FALSE(Plan(world.in).delete_job);
  EXPECT_TRUE(Plan(world.in).look_again);
  world.in.now += seconds(10);
  EXPECT_TRUE(Plan(world.in).delete_job);
}

TEST(PlannerTest, ANewViewAndItsFiguresComeIntoTheStatus) {
  World world = World::Training(3);
  world.View(2, 2);
  world.in.rebuilds = {{.epoch = membership::MakeEpoch(1, 2),
                        .reason = "PodLost",
                        .seconds = {{"decide", 0.08}},
                        .steps_lost = 1}};
  Decision out = Plan(world.in);
  EXPECT_EQ(out.status.world_size, 2);
  ASSERT_EQ(out.status.ring.size(), 2u);
  EXPECT_EQ(out.status.ring[1].pod, "digits-worker-1");
  EXPECT_EQ(out.status.last_rebuild->reason, "PodLost");
  EXPECT_EQ(out.status.steps_lost, 1);
  const auto said_lost = [](const Event& event) {
    return event.reason == "StepsLost" &&
           event.message.find("epoch 1.2 (PodLost) goes on 1 step before") != std::string::npos;
  };
  EXPECT_EQ(std::count_if(out.events.begin(), out.events.end(), said_lost), 1);
  world.in.job.status = out.status;
  out = Plan(world.in);
  EXPECT_EQ(out.status.steps_lost, 1) << "the same figures count once";
  EXPECT_EQ(std::count_if(out.events.begin(), out.events.end(), said_lost), 0);
}

TEST(PlannerTest, TheSidecarsAddressIsWrittenOnItsPodOnce) {
  World world = World::Training(1);
  ASSERT_EQ(Plan(world.in).annotations.size(), 1u);
  EXPECT_EQ(Plan(world.in).annotations[0].key, api::kHttpAnnotation);
  world.Pod(0).http = "10.0.0.1:80";
  EXPECT_THAT(Plan(world.in).annotations, IsEmpty());
}

}  // namespace
}  // namespace ringmaster::planner
