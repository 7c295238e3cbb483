// What the user sees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "operator/planner/testing/world.h"

namespace ringmaster::planner {
namespace {

using membership::MakeEpoch;
using membership::Reason;
using std::chrono::seconds;
using testing::IsEmpty;

const Event* Find(const Decision& out, const std::string& reason) {
  const auto at = std::find_if(out.events.begin(), out.events.end(),
                               [&](const Event& event) { return event.reason == reason; });
  return at == out.events.end() ? nullptr : &*at;
}

void NextView(World& world, Reason reason, bool planned) {
  membership::View view = *world.in.view;
  view.epoch += 1;
  view.reason = reason;
  view.planned = planned;
  world.in.view = std::make_shared<const membership::View>(view);
}

TEST(ConditionTest, ItsTimeIsOfTheLastChangeOfItsStatus) {
  World world = World::Training(1);
  const std::string before = world.in.job.status.Find("Running")->last_transition_time;
  EXPECT_FALSE(before.empty());
  world.in.now += seconds(60);
  EXPECT_EQ(Plan(world.in).status.Find("Running")->last_transition_time, before);
  EXPECT_EQ(Plan(world.in).status.start_time, world.in.job.status.start_time);
}

TEST(ConditionTest, OneThatIsFalseFromTheBeginningHasATimeToo) {
  EXPECT_FALSE(Plan(World(1).in).status.Find("Running")->last_transition_time.empty());
}

TEST(ConditionTest, ItAndTheStatusSayWhichGenerationTheyAreOf) {
  World world = World::Training(1);
  world.in.job.generation = 2;
  const Decision out = Plan(world.in);
  EXPECT_EQ(out.status.observed_generation, 2);
  EXPECT_EQ(out.status.Find("Running")->observed_generation, 2);
}

TEST(RanksMissingTest, SaysRankPodTensorAndSinceWhenAndThatItIsOver) {
  World world = World::Training(3);
  EXPECT_EQ(Plan(world.in).status.Find("RanksMissing"), nullptr);
  SidecarFacts& teller = world.Sidecar(0);
  teller.stalls = {{.tensor = "grad",
                    .asked = 2,
                    .missing = {1},
                    .pods = {"digits-worker-1"},
                    .waited_ms = 61000}};
  teller.stalls_at = world.in.now;
  const std::string said = "'grad': asked for by 2 ranks, not by rank 1 (digits-worker-1), since " +
                           api::FormatTime(world.in.now - seconds(61));
  Decision out = Plan(world.in);
  EXPECT_TRUE(out.status.Is("RanksMissing"));
  EXPECT_EQ(out.status.Find("RanksMissing")->message, said);
  ASSERT_NE(Find(out, "RanksMissing"), nullptr);
  EXPECT_EQ(Find(out, "RanksMissing")->message, said);
  EXPECT_EQ(out.status.state, "Running");
  world.in.job.status = out.status;
  world.in.now += seconds(60);
  EXPECT_EQ(Find(Plan(world.in), "RanksMissing"), nullptr) << "said once";
  teller.stalls.clear();
  out = Plan(world.in);
  EXPECT_FALSE(out.status.Is("RanksMissing"));
  EXPECT_EQ(out.status.Find("RanksMissing")->reason, "AllCame");
}

TEST(RanksMissingTest, WhatWasSaidInAnotherViewOrByOneThatIsSilentIsOver) {
  World world = World::Training(3);
  world.Sidecar(0).stalls = {{.tensor = "grad", .missing = {1}}};
  world.Sidecar(0).connected = false;
  EXPECT_EQ(Plan(world.in).status.Find("RanksMissing"), nullptr);
  world.Sidecar(0).connected = true;
  NextView(world, Reason::kPodLost, false);
  EXPECT_EQ(Plan(world.in).status.Find("RanksMissing"), nullptr);
}

TEST(CantJoinTest, NamesThePodsWhoseScriptHasNoStateOnceAndSaysWhenItIsOver) {
  World world = World::Training(2);
  world.Running(2).Ready(2);
  EXPECT_EQ(Plan(world.in).status.Find("CantJoin"), nullptr) << "it waits for its turn";
  world.Sidecar(2).candidate.workers[0].loads = false;
  Decision out = Plan(world.in);
  EXPECT_TRUE(out.status.Is("CantJoin"));
  const std::string said =
      "digits-worker-2 can't join those who train: the script registers no state (elastic.run and "
      "a "
      "State would let it in)";
  EXPECT_EQ(out.status.Find("CantJoin")->message, said);
  ASSERT_NE(Find(out, "NoStateRegistered"), nullptr);
  EXPECT_EQ(Find(out, "NoStateRegistered")->message, said);
  EXPECT_TRUE(out.status.Is("Running")) << "the others go on";
  world.in.job.status = out.status;
  EXPECT_EQ(Find(Plan(world.in), "NoStateRegistered"), nullptr) << "said once";
  world.Sidecar(2).connected = false;
  EXPECT_FALSE(Plan(world.in).status.Is("CantJoin"));
}

TEST(CantJoinTest, MembersWithoutStateAndPodsOfAJobThatBeginsCanDoWithoutIt) {
  World training = World::Training(2);
  training.Sidecar(1).candidate.workers[0].loads = false;
  EXPECT_EQ(Plan(training.in).status.Find("CantJoin"), nullptr);
  World begins(2);
  begins.Running(0).Ready(0);
  begins.Sidecar(0).candidate.workers[0].loads = false;
  EXPECT_EQ(Plan(begins.in).status.Find("CantJoin"), nullptr);
}

TEST(CantJoinTest, AWorkerThatWasStartedAgainInAPodOfTheViewIsNamed) {
  World world = World::Training(2);
  auto& workers = world.Sidecar(1).candidate.workers;
  for (auto& worker : workers) worker.loads = false;
  workers[0].incarnation = 2;
  const Decision out = Plan(world.in);
  ASSERT_TRUE(out.status.Is("CantJoin"));
  EXPECT_THAT(out.status.Find("CantJoin")->message,
              testing::StartsWith("worker 0 of digits-worker-1 can't join those who train: "));
  workers[0].loads = true;
  EXPECT_EQ(Plan(world.in).status.Find("CantJoin"), nullptr) << "it waits for its turn";
}

TEST(ScheduledTest, HoldsWhenAllHaveANode) {
  World world(2);
  world.Running(0).Pending(1);
  EXPECT_FALSE(Plan(world.in).status.Is("Scheduled"));
  world.Pod(1).scheduled = true;
  EXPECT_TRUE(Plan(world.in).status.Is("Scheduled"));
}

TEST(ScheduledTest, StaysAsItWasWhenPodsEndWithTheirJob) {
  World failed = World::Training(2);
  failed.End(1, PodPhase::kFailed, 1).Settle();
  EXPECT_TRUE(failed.in.job.status.Is("Scheduled"));
  World finishing = World::Training(2);
  finishing.in.job.status.finished_epoch = finishing.in.view->epoch;
  finishing.End(1, PodPhase::kSucceeded, 0).Settle();
  EXPECT_EQ(finishing.in.job.status.state, "Finishing");
  EXPECT_TRUE(finishing.in.job.status.Is("Scheduled"));
}

TEST(RebuildingTest, IsNotThereBeforeTheFirstTime) {
  EXPECT_EQ(World::Training(2).in.job.status.Find("Rebuilding"), nullptr);
}

TEST(RebuildingTest, NamesTheMemberThatIsNotInTheNewestView) {
  World world = World::Training(2);
  NextView(world, Reason::kPodLost, false);
  world.Sidecar(0).epoch = world.in.view->epoch;
  Decision out = Plan(world.in);
  EXPECT_EQ(out.status.state, "Rebuilding");
  EXPECT_THAT(out.status.Find("Rebuilding")->message, testing::HasSubstr("digits-worker-1"));
  world.Sidecar(1).connected = false;
  EXPECT_FALSE(Plan(world.in).status.Is("Rebuilding")) << "of which view it is nobody knows";
}

TEST(RebuildingTest, NothingIsRebuiltAtTheEnd) {
  World world = World::Training(2);
  world.in.job.status.finished_epoch = world.in.view->epoch;
  world.End(1, PodPhase::kSucceeded, 0);
  EXPECT_FALSE(Plan(world.in).status.Is("Rebuilding"));
}

TEST(SuspendedTest, RunningSaysWhyAndTheClockStartsAnewWithTheResumption) {
  World world = World::Training(1);
  world.in.job.spec.run_policy.suspend = true;
  Decision out = Plan(world.in);
  EXPECT_EQ(out.status.Find("Running")->reason, "Suspended");
  EXPECT_EQ(out.status.start_time, "");
  ASSERT_NE(Find(out, "Suspended"), nullptr);
  world.in.job.status = out.status;
  world.Remove(0);
  world.in.job.spec.run_policy.suspend = false;
  world.in.now += seconds(60);
  out = Plan(world.in);
  EXPECT_EQ(out.status.start_time, api::FormatTime(world.in.now));
  EXPECT_NE(Find(out, "Resumed"), nullptr);
}

TEST(StartTest, TheDeadlineCountsFromTheStartOfRunning) {
  World world(1);
  world.in.job.spec.run_policy.active_deadline_seconds = 60;
  world.in.job.status = Plan(world.in).status;
  world.in.now += seconds(100);
  Decision out = Plan(world.in);
  EXPECT_FALSE(out.status.Is("Failed")) << "it stands in line";
  EXPECT_EQ(out.status.running_since, "");
  world.Running(0);
  out = Plan(world.in);
  EXPECT_EQ(out.status.running_since, api::FormatTime(world.in.now));
  ASSERT_TRUE(out.look_again);
  EXPECT_LE(*out.look_again, seconds(61));
  world.in.job.status = out.status;
  world.in.now += seconds(60);
  EXPECT_EQ(Plan(world.in).status.Find("Failed")->reason, "DeadlineExceeded");
}

TEST(SuspendedTest, NoReplicasIsASuspension) {
  World world = World::Training(2);
  world.in.job.spec.worker.replicas = 0;
  Decision out = Plan(world.in);
  EXPECT_TRUE(out.status.Is("Suspended"));
  const auto said = [&] { return Plan(world.in).status.Find("Running")->message; };
  EXPECT_EQ(said(), "worker.replicas is 0: its pods are being removed");
  world.in.job.status = out.status;
  world.AllKnowThatTheyLeave();
  EXPECT_EQ(Plan(world.in).deletes.size(), 2u);
  world.in.pods.clear();
  EXPECT_EQ(said(), "worker.replicas is 0: the job has no pods");
  world.in.job.spec.worker.replicas = 2;
  out = Plan(world.in);
  EXPECT_EQ(out.creates.size(), 2u);
  EXPECT_FALSE(out.status.Is("Suspended"));
}

TEST(RingTest, AVeryLargeRingIsCutInTheStatus) {
  World world = World::Training(1);
  membership::View view = *world.in.view;
  view.ranks.resize(5000, view.ranks.front());
  view.epoch = membership::MakeEpoch(1, 2);
  world.in.view = std::make_shared<const membership::View>(view);
  const Decision out = Plan(world.in);
  EXPECT_EQ(out.status.world_size, 5000);
  EXPECT_EQ(out.status.ring.size(), 1000u);
}

struct LossCase {
  const char* name;
  Reason reason;
  bool planned;
  bool warning;
};

class LossTable : public testing::TestWithParam<LossCase> {};

TEST_P(LossTable, SaysWhichNewViewIsAWarning) {
  World world = World::Training(2);
  NextView(world, GetParam().reason, GetParam().planned);
  const Decision out = Plan(world.in);
  const Event* event = Find(out, std::string(ReasonText(GetParam().reason)));
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->warning, GetParam().warning);
}

INSTANTIATE_TEST_SUITE_P(
    StatusTest, LossTable,
    testing::Values(LossCase{"WorkerLost", Reason::kWorkerLost, false, true},
                    LossCase{"PodLost", Reason::kPodLost, false, true},
                    LossCase{"LinkBroken", Reason::kLinkBroken, false, true},
                    LossCase{"QuorumRecovered", Reason::kQuorumRecovered, false, true},
                    LossCase{"ReleasedAfterALoss", Reason::kPodLost, true, false},
                    LossCase{"Drained", Reason::kPodDrained, true, false},
                    LossCase{"Joined", Reason::kPodJoined, true, false}),
    [](const auto& info) { return info.param.name; });

TEST(RingTest, ANewViewIsToldOfOnce) {
  World world = World::Training(2);
  NextView(world, Reason::kPodLost, false);
  world.Settle();
  EXPECT_EQ(Find(Plan(world.in), "PodLost"), nullptr);
}

TEST(RingTest, ThatNobodyTrainsBelowMinReplicasIsAnEventOnce) {
  World world = World::Training(2);
  NextView(world, Reason::kPodLost, false);
  auto held = std::make_shared<membership::View>(*world.in.view);
  held->train = false;
  world.in.view = held;
  const Decision out = Plan(world.in);
  const Event* event = Find(out, "BelowMinReplicas");
  ASSERT_NE(event, nullptr);
  EXPECT_TRUE(event->warning);
  EXPECT_THAT(event->message, testing::HasSubstr("held at the step boundary"));
  world.Settle();
  EXPECT_EQ(Find(Plan(world.in), "BelowMinReplicas"), nullptr);
}

TEST(RingTest, TheEventOfAViewNamesWhoWentAndWhoCame) {
  World world = World::Training(3);
  world.Running(3).Ready(3).Members(2, {0, 2, 3});
  NextView(world, Reason::kPodJoined, true);
  const Decision out = Plan(world.in);
  const Event* event = Find(out, "PodJoined");
  ASSERT_NE(event, nullptr);
  EXPECT_THAT(event->message,
              testing::HasSubstr("before 3; gone: digits-worker-1; joined: digits-worker-3"));
  world.in.job.spec.slots_per_worker = 2;
  EXPECT_THAT(Find(Plan(world.in), "PodJoined")->message,
              testing::HasSubstr("gone: digits-worker-1/0; joined: digits-worker-3/0"));
}

TEST(RingTest, StaysAsItWasAtTheEnd) {
  World world = World::Training(2);
  world.End(1, PodPhase::kFailed, 1).Settle();
  NextView(world, Reason::kPodLost, false);
  const Decision out = Plan(world.in);
  EXPECT_EQ(out.status.epoch, world.in.job.status.epoch);
  EXPECT_THAT(out.events, IsEmpty());
}

TEST(FiguresTest, OfAnOlderViewThatComeLateDontCountAgain) {
  World world = World::Training(2);
  world.in.rebuilds = {{.epoch = MakeEpoch(1, 2), .reason = "PodLost", .steps_lost = 3},
                       {.epoch = MakeEpoch(1, 3), .reason = "PodLost", .steps_lost = 4}};
  world.Settle();
  EXPECT_EQ(world.in.job.status.steps_lost, 7);
  const Decision out = Plan(world.in);
  EXPECT_EQ(out.status.steps_lost, 7);
  EXPECT_EQ(out.status.last_rebuild->epoch, MakeEpoch(1, 3));
}

// Each counts by itself, and a new operator hears one after the other.
TEST(FiguresTest, ASidecarThatKnowsOfFewerLostStepsTakesNoneBack) {
  World world = World::Training(2);
  const auto tell = [&](std::int64_t steps) {
    world.in.rebuilds = {{.epoch = MakeEpoch(1, 2), .reason = "PodLost", .steps_lost = steps}};
    const Decision out = Plan(world.in);
    world.in.job.status = out.status;
    return std::count_if(out.events.begin(), out.events.end(),
                         [](const Event& event) { return event.reason == "StepsLost"; });
  };
  EXPECT_EQ(tell(5), 1);
  EXPECT_EQ(tell(3), 0);
  EXPECT_EQ(tell(5), 0);
  EXPECT_EQ(world.in.job.status.steps_lost, 5);
  EXPECT_EQ(tell(6), 1);
  EXPECT_EQ(world.in.job.status.steps_lost, 6);
  EXPECT_EQ(world.in.job.status.last_rebuild->steps_lost, 6);
}

TEST(FiguresTest, AJobThatRanUnderAnEarlierVersionHasRunSinceItsFirstPodDid) {
  World world = World::Training(2);
  world.in.job.status.running_since.clear();
  world.Pod(1).running_since = kNow - std::chrono::hours(2);
  world.in.job.status.start_time = api::FormatTime(kNow - std::chrono::hours(3));
  EXPECT_EQ(Plan(world.in).status.running_since, api::FormatTime(kNow - std::chrono::hours(2)));
  world.in.job.status.start_time = api::FormatTime(kNow - std::chrono::hours(1));
  EXPECT_EQ(Plan(world.in).status.running_since, api::FormatTime(kNow - std::chrono::hours(1)))
      << "what was before a suspension is not counted";
}

TEST(FiguresTest, AJobThatIsResumedRunsWhenItsNewPodsDo) {
  World world = World::Training(2);
  world.in.job.status.running_since.clear();
  world.Remove(0).Remove(1);
  EXPECT_EQ(Plan(world.in).status.running_since, "") << "its view is one of before";
}

TEST(FiguresTest, ADeadPodIsNotActiveWhateverItsPhase) {
  World world = World::Training(2);
  world.Pod(1).proven_dead = true;
  EXPECT_EQ(Plan(world.in).status.worker.active, 1);
}

TEST(FiguresTest, WhatWasAchievedStaysWhenThePodsAreRemoved) {
  World world = World::Training(2);
  world.in.job.status.finished_epoch = world.in.view->epoch;
  for (const int i : {0, 1}) world.End(i, PodPhase::kSucceeded, 0);
  world.Settle().Remove(0).Remove(1);
  EXPECT_EQ(Plan(world.in).status.worker.succeeded, 2);
}

}  // namespace
}  // namespace ringmaster::planner
