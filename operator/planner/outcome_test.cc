// What has ended and why, whether the job has ended, and what is cleaned up afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "operator/planner/testing/world.h"

namespace ringmaster::planner {
namespace {

using api::FailureAction;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

int Said(const Decision& out, const std::string& reason) {
  return static_cast<int>(std::count_if(out.events.begin(), out.events.end(),
                                        [&](const Event& e) { return e.reason == reason; }));
}

World Finishing(int n) {
  World world = World::Training(n);
  world.in.job.status.finished_epoch = world.in.view->epoch;
  return world;
}

// ---- The cause of an end.

TEST(CountPodTest, AFailedPodIsCountedAndToldOf) {
  World world = World::Training(2);
  world.End(1, PodPhase::kFailed, 137);
  const Decision out = Plan(world.in);
  EXPECT_EQ(out.status.worker.failed, 1);
  EXPECT_EQ(Said(out, "PodFailed"), 1);
}

struct RuleCase {
  std::string name;
  api::FailureRule rule;
  int exit_code;
  std::string reason;
  bool fails_job;
  int faults;
};

class RuleTable : public testing::TestWithParam<RuleCase> {};

TEST_P(RuleTable, SaysWhatAnEndLeadsTo) {
  World world = World::Training(2);
  world.in.job.spec.failure_policy.rules = {GetParam().rule};
  world.End(1, PodPhase::kFailed, GetParam().exit_code, GetParam().reason);
  if (GetParam().exit_code < 0) world.Pod(1).exit_code.reset();
  const Decision out = Plan(world.in);
  EXPECT_EQ(out.status.Is("Failed"), GetParam().fails_job);
  EXPECT_EQ(out.status.faults, GetParam().faults);
}

INSTANTIATE_TEST_SUITE_P(
    OutcomeTest, RuleTable,
    testing::Values(
        RuleCase{"AReason", {{}, {"Evicted"}, FailureAction::kFailJob}, 137, "Evicted", true, 0},
        RuleCase{
            "AnotherReason", {{}, {"Lost"}, FailureAction::kFailJob}, 137, "Evicted", false, 0},
        RuleCase{"AnIgnoredCode", {{1}, {}, FailureAction::kIgnore}, 1, "", false, 0},
        RuleCase{"AnIgnoredCrash", {{139}, {}, FailureAction::kIgnore}, 139, "", false, 0},
        RuleCase{"NoCodeIsNoCode", {{137}, {}, FailureAction::kFailJob}, -1, "", false, 1}),
    [](const auto& info) { return info.param.name; });

TEST(CountPodTest, AnIgnoredCrashOfAWorkerRestartedInPlaceIsNoFault) {
  World world = World::Training(2);
  world.in.job.spec.failure_policy.rules = {{{139}, {}, FailureAction::kIgnore}};
  world.in.exits = {{"digits-worker-0", 0, 139, true, false}};
  EXPECT_EQ(Plan(world.in).status.faults, 0);
}

TEST(CountPodTest, APodThatWasToLeaveHasNotFailedWhateverItEndsWith) {
  World world = World::Training(2);
  world.Pod(1).drain_reason = "Requested";
  world.Pod(1).drain_since = kNow;
  world.End(1, PodPhase::kFailed, 1);
  const Decision out = Plan(world.in);
  EXPECT_FALSE(out.status.Is("Failed"));
  EXPECT_EQ(out.status.worker.failed, 0);
  EXPECT_EQ(out.status.pods_replaced, 0);
}

TEST(CountPodTest, AWorkerThatIsNotRestartedIsCountedWithItsPodAlone) {
  World world = World::Training(2);
  world.in.exits = {{"digits-worker-0", 0, 139, false, false}};
  const Decision out = Plan(world.in);
  EXPECT_EQ(out.status.worker_restarts, 0);
  EXPECT_EQ(out.status.faults, 0);
  EXPECT_EQ(Said(out, "WorkerRestarted"), 0);
  EXPECT_EQ(out.exits_counted, 1u);
}

TEST(CountPodTest, PodsThatAreGoneNeedNoAccountAnyMore) {
  World world = World::Training(2);
  world.End(1, PodPhase::kFailed, 137).Settle();
  EXPECT_THAT(world.in.job.status.accounted_pods, ElementsAre("uid-1"));
  world.Remove(1);
  EXPECT_THAT(Plan(world.in).status.accounted_pods, IsEmpty());
}

TEST(CountPodTest, WhatEndsAfterTheJobOrWithItsSuspensionIsNoFailure) {
  World failed = World::Training(2);
  failed.End(1, PodPhase::kFailed, 1).Settle();
  ASSERT_TRUE(failed.in.job.status.Is("Failed"));
  World suspended = World::Training(2);
  suspended.in.job.spec.run_policy.suspend = true;
  suspended.Settle();
  for (World* world : {&failed, &suspended}) {
    world->End(0, PodPhase::kFailed, 139);
    world->in.exits = {{"digits-worker-0", 0, 139, true, false}};
    const Decision out = Plan(world->in);
    EXPECT_EQ(out.status.worker.failed, world->in.job.status.worker.failed);
    EXPECT_EQ(out.status.faults, world->in.job.status.faults);
    EXPECT_THAT(out.events, IsEmpty());
    EXPECT_EQ(out.exits_counted, 1u) << "they don't wait for ever to be counted";
  }
}

std::string FailureOf(World& world) { return Plan(world.in).status.Find("Failed")->message; }

TEST(CountPodTest, TheMessageSaysHowItEndedAndWhyThatEndsTheJob) {
  World world = World::Training(2);
  world.End(1, PodPhase::kFailed, 3);
  world.Pod(1).last_words = "ValueError: no";
  EXPECT_EQ(FailureOf(world),
            "pod digits-worker-1 failed: its worker exited with 3: ValueError: no; no rule of "
            "failurePolicy names that exit code");
  world.in.job.spec.failure_policy.rules = {{{3}, {}, FailureAction::kFailJob}};
  world.Pod(1).last_words = "";
  EXPECT_EQ(FailureOf(world),
            "pod digits-worker-1 failed: its worker exited with 3; a rule of failurePolicy says "
            "FailJob");
}

TEST(CountPodTest, ACodeThatTheLauncherChoseIsNotSaidToBeTheWorkers) {
  World world = World::Training(2);
  world.End(1, PodPhase::kFailed, 3);
  world.Pod(1).last_words =
      "ringmaster-launcher: error: worker ended before the job did: exit code 0 without shutdown()";
  EXPECT_THAT(FailureOf(world), HasSubstr("failed: its launcher exited with 3: ringmaster-l"));
}

TEST(CountPodTest, AnInitContainerThatFailedIsNamed) {
  World world = World::Training(2);
  world.in.job.spec.run_policy.backoff_limit = 0;
  world.End(1, PodPhase::kFailed, 0);
  world.Pod(1).exit_code.reset();
  world.Pod(1).failed_init = ContainerEnd{"fetch", 3};
  world.Pod(1).last_words = "no route";
  EXPECT_EQ(FailureOf(world),
            "the application failed 1 time; backoffLimit is 0; the last time: pod digits-worker-1 "
            "failed: its container fetch exited with 3: no route");
}

TEST(CountPodTest, TheLastFaultOfAWorkerThatIsRestartedInPlaceIsTold) {
  World world = World::Training(2);
  world.in.job.spec.run_policy.backoff_limit = 0;
  world.in.exits = {{"digits-worker-0", 0, 139, true, false}};
  EXPECT_THAT(FailureOf(world),
              HasSubstr("the last time: worker 0 of pod digits-worker-0 was ended by signal 11"));
}

// ---- After all ranks have agreed to end.

TEST(FinishingTest, AKilledPodIsNeitherAFailureNorReplaced) {
  World world = Finishing(2);
  world.End(1, PodPhase::kFailed, 137);
  const Decision out = Plan(world.in);
  EXPECT_FALSE(out.status.Is("Failed"));
  EXPECT_EQ(out.status.pods_replaced, 0);
  EXPECT_EQ(Said(out, "PodFailed"), 0);
  EXPECT_THAT(out.creates, IsEmpty());
}

TEST(FinishingTest, AJobOfWhichAllPodsAreKilledAfterTheEndHasSucceeded) {
  World world = Finishing(2);
  for (const int i : {0, 1}) world.End(i, PodPhase::kFailed, 137);
  const Decision out = Plan(world.in);
  ASSERT_TRUE(out.status.Is("Succeeded")) << "nothing would ever end it";
  EXPECT_THAT(out.status.Find("Succeeded")->message, HasSubstr("all ranks had agreed to end"));
  EXPECT_THAT(out.creates, IsEmpty());
}

TEST(FinishingTest, AScriptThatFailsAfterTheEndStillFailsTheJob) {
  World world = Finishing(2);
  world.End(1, PodPhase::kFailed, 1);
  EXPECT_EQ(Plan(world.in).status.Find("Failed")->reason, "WorkerFailedAtTheEnd");
}

// The other pods have a new view without it and agree to end before the kubelet has reported its
// end.
TEST(FinishingTest, AScriptThatFailsJustBeforeTheEndFailsTheJob) {
  World world = Finishing(2);
  world.Running(2).Connected(2).Sidecar(2).last_exit = 1;
  world.in.view_since = world.in.now;
  for (const int i : {0, 1}) world.End(i, PodPhase::kSucceeded, 0);
  const Decision waits = Plan(world.in);
  EXPECT_FALSE(waits.status.Is("Succeeded"));
  EXPECT_THAT(Deleted(waits), IsEmpty()) << "its exit code would be lost";
  World failed = world;
  failed.End(2, PodPhase::kFailed, 1);
  EXPECT_EQ(Plan(failed.in).status.Find("Failed")->reason, "WorkerFailed");
  world.in.now += kFinishGrace;
  EXPECT_TRUE(Plan(world.in).status.Is("Succeeded")) << "it never ended";
}

TEST(FinishingTest, AWorkerThatWasKilledJustBeforeTheEndHoldsNothingUp) {
  World world = Finishing(2);
  world.Running(2).Connected(2).Sidecar(2).last_exit = 137;
  world.in.view_since = world.in.now;
  for (const int i : {0, 1}) world.End(i, PodPhase::kSucceeded, 0);
  EXPECT_TRUE(Plan(world.in).status.Is("Succeeded"));
}

TEST(FinishingTest, OnePodMayTakeMuchLongerToEndThanTheOther) {
  World world = Finishing(2);
  world.End(1, PodPhase::kSucceeded, 0);
  world.in.now += 100 * kFinishGrace;
  EXPECT_FALSE(Plan(world.in).status.Is("Failed"));
}

TEST(FinishingTest, NothingIsBootstrappedFromTheReadyPods) {
  World world(1);
  world.Running(0).Ready(0);
  world.in.job.status.finished_epoch = membership::MakeEpoch(1, 1);
  EXPECT_EQ(Plan(world.in).first_view, nullptr);
}

TEST(FinishingTest, PodsOutsideOfTheLastViewGo) {
  World world = Finishing(2);
  world.in.job.spec.worker.replicas = 5;
  for (const int i : {2, 3, 4}) world.Running(i).Connected(i);
  world.Pod(3).deleting = true;
  world.End(4, PodPhase::kFailed, 137);
  EXPECT_THAT(Deleted(Plan(world.in)), ElementsAre("digits-worker-2"));
}

TEST(FinishingTest, AJobThatWasSuspendedAtItsEndBeginsAnewWhenItIsResumed) {
  World world = Finishing(2);
  for (const int i : {0, 1}) world.Sidecar(i).finished_epoch = world.in.view->epoch;
  world.in.job.spec.run_policy.suspend = true;
  world.Settle();
  EXPECT_EQ(world.in.job.status.finished_epoch, 0u);
  // The job was resumed before the pods, or their sidecars' reports, were gone.
  world.in.job.spec.run_policy.suspend = false;
  world.Pod(0).deleting = true;
  world.Pod(0).created = kNow - seconds(60);
  std::erase_if(world.in.pods, [](const PodFacts& pod) { return pod.index == 1; });
  const Decision out = Plan(world.in);
  EXPECT_NE(out.status.state, "Finishing");
  EXPECT_THAT(Created(out), ElementsAre(1, 2));
  // The end of the present run counts.
  world.in.job.status = out.status;
  world.Running(1).Sidecar(1).finished_epoch = membership::MakeEpoch(2, 1);
  EXPECT_EQ(Plan(world.in).status.state, "Finishing");
}

// A node may be drained while the script does what comes after its last step.
TEST(FinishingTest, TheEndOfTheRunAfterASuspensionCountsAlsoFromAPodThatIsDeleted) {
  World world = World::Training(1);
  world.in.job.status.conditions.push_back(
      {"Suspended", false, "Resumed", "", "2026-01-31T12:00:00Z", 1});
  world.Pod(0).deleting = true;
  world.Sidecar(0).finished_epoch = world.in.view->epoch;
  EXPECT_EQ(Plan(world.in).status.state, "Finishing") << "made in the second of the resumption";
  world.Pod(0).created = kNow - seconds(2);
  EXPECT_EQ(Plan(world.in).status.state, "Finishing") << "the API server's clock is late";
}

TEST(FinishingTest, APodThatIsDeletedMayBeTheFirstToSayThatAllHaveAgreed) {
  World world = World::Training(1);
  world.Pod(0).deleting = true;
  world.Sidecar(0).finished_epoch = world.in.view->epoch;
  EXPECT_EQ(Plan(world.in).status.state, "Finishing");
}

// ---- Success.

TEST(SuccessTest, WithoutAViewAPodThatWasKilledIsMissing) {
  World world(2);
  world.Running(0).Connected(0).Running(1).Connected(1);
  world.End(0, PodPhase::kSucceeded, 0).End(1, PodPhase::kFailed, 139);
  EXPECT_FALSE(Plan(world.in).status.Is("Succeeded"));
  world.End(1, PodPhase::kSucceeded, 0);
  EXPECT_TRUE(Plan(world.in).status.Is("Succeeded"));
}

// The record was deleted while no operator looked, after a view that had no pod 2 any more.
World EndedWithoutARecord() {
  World world(3);
  world.in.job.status.epoch = membership::MakeEpoch(1, 1);
  world.in.job.status.world_size = 3;
  for (int i = 0; i < 3; ++i) world.Running(i).Connected(i);
  world.End(0, PodPhase::kSucceeded, 0).End(1, PodPhase::kSucceeded, 0);
  return world;
}

TEST(SuccessTest, WhereTheRecordIsLostAPodThatFailedWasLeftOutByThoseThatEndedWithZero) {
  World world = EndedWithoutARecord();
  world.End(2, PodPhase::kFailed, 137);
  EXPECT_TRUE(Plan(world.in).status.Is("Succeeded"));
}

TEST(SuccessTest, WhereTheRecordIsLostANewcomerIsNotWaitedForAndWhoIsNotHeardMayTrain) {
  World world = EndedWithoutARecord();
  world.Sidecar(2).connected = false;
  EXPECT_FALSE(Plan(world.in).status.Is("Succeeded"));
  world.Sidecar(2).connected = true;
  EXPECT_TRUE(Plan(world.in).status.Is("Succeeded"));
  world.Sidecar(2).epoch = membership::MakeEpoch(1, 1);
  EXPECT_FALSE(Plan(world.in).status.Is("Succeeded"));
}

TEST(SuccessTest, APodThatWasLostAfterTheAgreementDoesNotHoldItUp) {
  World world = Finishing(2);
  world.End(0, PodPhase::kSucceeded, 0).End(1, PodPhase::kFailed, 137);
  EXPECT_TRUE(Plan(world.in).status.Is("Succeeded"));
}

// Its kubelet says nothing any more, and the node's taint has evicted it.
TEST(SuccessTest, APodOnANodeThatWasLostAfterTheAgreementIsNotWaitedForForEver) {
  World world = Finishing(2);
  world.End(0, PodPhase::kSucceeded, 0);
  world.Sidecar(1).connected = false;
  world.Pod(1).node = "gpu-1";
  world.Pod(1).deleting = true;
  world.Pod(1).delete_at = world.in.now + seconds(30);
  world.in.nodes.push_back(
      {.name = "gpu-1", .taints = {{"node.kubernetes.io/unreachable", "NoExecute", ""}}});
  Decision out = Plan(world.in);
  EXPECT_FALSE(out.status.Is("Succeeded"));
  ASSERT_TRUE(out.look_again);
  world.in.now += seconds(30);
  World heard = world;
  heard.in.nodes.front().taints.clear();
  EXPECT_FALSE(Plan(heard.in).status.Is("Succeeded")) << "its kubelet will say how it has ended";
  EXPECT_TRUE(Plan(world.in).status.Is("Succeeded"));
}

// The operator was away, and heard neither of the view in which the others joined again nor of its
// end.
TEST(SuccessTest, WhereAllPodsHaveEndedWithZeroNobodyStillTrains) {
  World world = World::Training(3);
  world.Members(3, {0});
  world.Pod(0).drain_reason = "Requested";
  world.Pod(0).drain_since = kNow;
  for (const int i : {1, 2}) world.End(i, PodPhase::kSucceeded, 0);
  EXPECT_FALSE(Plan(world.in).status.Is("Succeeded"));
  World failed = world, told = world;
  world.End(0, PodPhase::kSucceeded, 0);
  EXPECT_TRUE(Plan(world.in).status.Is("Succeeded"));
  failed.End(0, PodPhase::kFailed, 1);
  EXPECT_FALSE(Plan(failed.in).status.Is("Succeeded"));
  for (const int i : {0, 1, 2})
    told.End(i, PodPhase::kSucceeded, 0).Pod(i).drain_reason = "Requested";
  EXPECT_FALSE(Plan(told.in).status.Is("Succeeded")) << "all were told to leave";
}

TEST(SuccessTest, ADrainedPodThatEndsWithZeroEndsNothing) {
  World world = World::Training(3);
  world.Pod(2).drain_reason = "Requested";
  world.Pod(2).drain_since = kNow;
  world.End(2, PodPhase::kSucceeded, 0);
  world.in.now += 10 * kFinishGrace;
  const Decision out = Plan(world.in);
  EXPECT_FALSE(out.status.Is("Failed"));
  EXPECT_EQ(out.status.worker.succeeded, 0);
}

// ---- Failure.

TEST(FailureTest, AsManyFaultsAsTheBackoffLimitAreAllowed) {
  World world = World::Training(2);
  world.in.job.spec.run_policy.backoff_limit = 2;
  for (int i = 0; i < 2; ++i) world.in.exits.push_back({"digits-worker-0", 0, 139, true, false});
  EXPECT_FALSE(Plan(world.in).status.Is("Failed"));
  world.in.exits.push_back({"digits-worker-0", 0, 139, true, false});
  EXPECT_TRUE(Plan(world.in).status.Is("Failed"));
}

TEST(FailureTest, OnBelowMinFailsOnlyAJobThatIsBelowMinAndNotAtItsEnd) {
  World world = World::Training(2);
  world.in.job.spec.elastic_policy.on_below_min = api::OnBelowMin::kFailJob;
  EXPECT_FALSE(Plan(world.in).status.Is("Failed"));
  membership::View held = *world.in.view;
  held.train = false;
  world.in.view = std::make_shared<const membership::View>(held);
  world.in.job.status.finished_epoch = held.epoch;
  EXPECT_FALSE(Plan(world.in).status.Is("Failed"));
}

// Another view than this one, with another word on whether it may train.
void Hold(World& world, bool planned) {
  membership::View held = *world.in.view;
  held.epoch += 1;
  held.parent = world.in.view->epoch;
  held.train = false;
  held.planned = planned;
  world.in.view = std::make_shared<const membership::View>(held);
}

TEST(FailureTest, OnBelowMinFailsNoJobOfWhichMinReplicasWasRaised) {
  World world = World::Training(2);
  world.in.job.spec.elastic_policy.on_below_min = api::OnBelowMin::kFailJob;
  world.in.job.spec.elastic_policy.min_replicas = world.in.job.spec.worker.replicas = 4;
  Hold(world, /*planned=*/true);
  const Decision held = Plan(world.in);
  EXPECT_EQ(held.status.state, "Held");
  EXPECT_EQ(held.creates.size(), 2u);
  world.in.job.status = held.status;
  world.Members(3, {0});
  Hold(world, /*planned=*/true);
  EXPECT_TRUE(Plan(world.in).status.Is("Failed")) << "now one has left";
}

TEST(FailureTest, OnBelowMinFailsNoJobForAViewThatASuspensionHasLeftBehind) {
  World world = World::Training(2);
  world.in.job.spec.elastic_policy.on_below_min = api::OnBelowMin::kFailJob;
  Hold(world, /*planned=*/false);
  EXPECT_TRUE(Plan(world.in).status.Is("Failed"));
  world.Pod(0).deleting = true;
  world.Remove(1);
  EXPECT_FALSE(Plan(world.in).status.Is("Failed"));
}

TEST(FailureTest, InitTimeoutDoesNotHoldForWhoJoinsOthersThatTrain) {
  World world = World::Training(1);
  world.Running(1).Connected(1);
  world.in.now += seconds(world.in.job.spec.init_timeout_seconds + 1);
  EXPECT_FALSE(Plan(world.in).status.Is("Failed"));
}

TEST(FailureTest, InitTimeoutLeavesOutWhoIsReadyAndWhoseNodeIsSilent) {
  World world(3);
  world.in.job.spec.elastic_policy.min_replicas = 3;
  world.Running(0).Ready(0).Running(1).Connected(1).Running(2).Connected(2);
  world.On(2, "gpu-2").Node("gpu-2").taints = {{"node.kubernetes.io/unreachable", "NoExecute"}};
  world.Sidecar(2).connected = false;
  world.in.now += seconds(600);
  const std::string message = Plan(world.in).status.Find("Failed")->message;
  EXPECT_THAT(message, HasSubstr("digits-worker-1"));
  EXPECT_THAT(message, Not(HasSubstr("digits-worker-0")));
  EXPECT_THAT(message, Not(HasSubstr("digits-worker-2")));
}

// The new operator has no reports yet: sidecars repeat what they told its predecessor.
TEST(FailureTest, AnOperatorThatHasTakenAJobOverFailsItForNothingThatItHasNotHeard) {
  World early = World::Training(2);
  early.End(1, PodPhase::kSucceeded, 0);
  World init(2);
  init.Running(0).Running(1);
  for (World* world : {&early, &init}) {
    world->in.now += seconds(3600);
    EXPECT_TRUE(Plan(world->in).status.Is("Failed"));
    world->in.taken_over = world->in.now - seconds(1);
    const Decision out = Plan(world->in);
    EXPECT_FALSE(out.status.Is("Failed"));
    ASSERT_TRUE(out.look_again);
    EXPECT_LE(*out.look_again, kSidecarsReturn);
    world->in.now += kSidecarsReturn;
    EXPECT_TRUE(Plan(world->in).status.Is("Failed"));
  }
}

TEST(FailureTest, AJobThatIsSuspendedMissesNoDeadline) {
  World world = World::Training(1);
  world.in.job.spec.run_policy.active_deadline_seconds = 60;
  world.in.job.spec.run_policy.suspend = true;
  world.in.now += seconds(100);
  EXPECT_FALSE(Plan(world.in).status.Is("Failed"));
}

TEST(FailureTest, TheEndIsSaidOnceAndItsTimeStays) {
  World world = World::Training(2);
  world.End(1, PodPhase::kFailed, 1);
  const Decision first = Plan(world.in);
  EXPECT_EQ(Said(first, "WorkerFailed"), 1);
  EXPECT_THAT(first.creates, IsEmpty());
  world.in.job.status = first.status;
  world.in.now += seconds(60);
  const Decision second = Plan(world.in);
  EXPECT_EQ(second.status.completion_time, first.status.completion_time);
  EXPECT_THAT(second.events, IsEmpty());
  EXPECT_THAT(second.creates, IsEmpty());
}

// ---- Cleaning up.

TEST(CleanUpTest, SuspensionTakesEndedPodsTooAndNobodyTwice) {
  World world = World::Training(3);
  world.End(1, PodPhase::kFailed, 137);
  world.Pod(2).deleting = true;
  world.in.job.spec.run_policy.suspend = true;
  world.Settle().AllKnowThatTheyLeave();
  const Decision out = Plan(world.in);
  EXPECT_THAT(Deleted(out), ElementsAre("digits-worker-0", "digits-worker-1"));
  EXPECT_THAT(out.creates, IsEmpty());
  ASSERT_EQ(out.notices.size(), 2u) << "those that live learn that all of them leave";
  for (const PodNotice& notice : out.notices) {
    const auto* drain = std::get_if<DrainNotice>(&notice.notice);
    ASSERT_NE(drain, nullptr);
    EXPECT_EQ(drain->reason, "Suspended");
    EXPECT_TRUE(drain->all_leave);
    EXPECT_THAT(*drain->pod_uids, testing::IsSupersetOf({"uid-0", "uid-2"}));
    EXPECT_GT(drain->deadline_unix_ms, 0);
  }
}

TEST(CleanUpTest, NothingIsDeletedBeforeItIsWrittenHowTheJobEnded) {
  World world = World::Training(2);
  world.in.job.spec.run_policy.clean_pod_policy = api::CleanPodPolicy::kAll;
  world.End(1, PodPhase::kFailed, 3);
  const Decision out = Plan(world.in);
  EXPECT_TRUE(out.status.Is("Failed"));
  EXPECT_THAT(Deleted(out), IsEmpty()) << "the write may fail, and the next look judges again";
  EXPECT_TRUE(out.look_again);
  world.in.job.status = out.status;
  EXPECT_THAT(Deleted(Plan(world.in)), ElementsAre("digits-worker-0", "digits-worker-1"));
}

// They don't look for others that take over, and give their GPUs back after a step.
TEST(CleanUpTest, ThePodsOfAJobThatFailedAreToldThatAllLeave) {
  World world = World::Training(3);
  world.End(1, PodPhase::kFailed, 3);
  const auto told = [&] {
    std::size_t pods = 0;
    for (const PodNotice& notice : Plan(world.in).notices) {
      const auto* drain = std::get_if<DrainNotice>(&notice.notice);
      pods += drain != nullptr && drain->all_leave ? 1 : 0;
    }
    return pods;
  };
  EXPECT_EQ(told(), 0u) << "the write may fail, and the next look judges again";
  world.in.job.status = Plan(world.in).status;
  EXPECT_GE(told(), 2u);
  world.in.job.spec.run_policy.clean_pod_policy = api::CleanPodPolicy::kNone;
  EXPECT_EQ(told(), 0u) << "they stay";
}

TEST(CleanUpTest, WhatRunsOnBesideTheWorkersEndsWithTheJob) {
  World world = Finishing(2);
  world.End(0, PodPhase::kSucceeded, 0).End(1, PodPhase::kSucceeded, 0);
  world.Pod(1).lingers = true;
  world.Settle();
  EXPECT_THAT(Deleted(Plan(world.in)), ElementsAre("digits-worker-1"));
  world.in.job.spec.run_policy.clean_pod_policy = api::CleanPodPolicy::kNone;
  EXPECT_THAT(Deleted(Plan(world.in)), IsEmpty());
}

TEST(CleanUpTest, ItsTimeToLiveIsLookedAtFromTheEnd) {
  World world = World::Training(1);
  world.in.job.spec.run_policy.ttl_seconds_after_finished = 10;
  world.End(0, PodPhase::kFailed, 1);
  EXPECT_TRUE(Plan(world.in).look_again);
}

}  // namespace
}  // namespace ringmaster::planner
