// Which pods should exist: which leave, which are deleted, which names are free.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/planner/disruption.h"
#include "operator/planner/testing/stalled.h"
#include "operator/planner/testing/world.h"

namespace ringmaster::planner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(DrainTest, AHangingDrainEndsWithThePodsOwnGrace) {
  World world = World::Training(2);
  world.Pod(1).drain_reason = "x";
  world.Pod(1).drain_since = kNow;
  world.Pod(1).grace_seconds = 5;
  world.in.now += seconds(5);
  EXPECT_THAT(Deleted(Plan(world.in)), ElementsAre("digits-worker-1"));
}

TEST(DrainTest, TheLastThatHasTheStateLeavesWhenAnotherTrains) {
  World world = World::Training(2);
  world.Pod(0).drain_reason = world.Pod(1).drain_reason = "Requested";
  world.Pod(0).drain_since = kNow;
  Decision out = Plan(world.in);
  EXPECT_THAT(Drained(out), IsEmpty()) << "its time does not run yet";
  EXPECT_TRUE(out.status.Is("DrainHeld"));
  EXPECT_THAT(Reasons(out), testing::Contains("DrainHeld"));
  world.in.job.status = out.status;
  EXPECT_THAT(Reasons(Plan(world.in)), testing::Not(testing::Contains("DrainHeld"))) << "once";

  world.Running(2).Ready(2).Members(2, {1, 2});
  out = Plan(world.in);
  EXPECT_THAT(Drained(out), ElementsAre("digits-worker-1"));
  EXPECT_FALSE(out.status.Is("DrainHeld"));
}

TEST(DrainTest, OfAJobThatIsSuspendedAllLeave) {
  World world = World::Training(2);
  world.in.job.spec.run_policy.suspend = true;
  world.Pod(0).drain_reason = world.Pod(1).drain_reason = "Suspended";
  EXPECT_FALSE(Plan(world.in).status.Is("DrainHeld"));
}

TEST(DrainTest, APodThatGoesAlreadyIsNotDeletedAgain) {
  World world = World::Training(2);
  world.Pod(1).drain_reason = "x";
  world.Pod(1).drain_since = kNow;
  world.Pod(1).deleting = true;
  world.in.now += seconds(60);
  EXPECT_THAT(Plan(world.in).deletes, IsEmpty());
}

TEST(DrainTest, WhoLeavesIsNoReplicaAnyMore) {
  World world = World::Training(4);
  world.in.job.spec.worker.replicas = 2;
  EXPECT_EQ(Plan(world.in).status.replicas, 2);
}

TEST(DrainTest, OfCordonedNodesThePodOutsideTheRingLeavesFirst) {
  World world = World::Training(4);
  for (const int i : {0, 1, 2, 3}) world.On(i, "gpu-" + std::to_string(i));
  world.Members(2, {1, 2, 3});
  world.in.job.spec.worker.replicas = 3;
  for (const char* name : {"gpu-0", "gpu-3"}) world.Node(name).unschedulable = true;
  EXPECT_THAT(Drained(Plan(world.in)), ElementsAre("digits-worker-0"));
}

TEST(RemoveEndedTest, OnlyThoseThatHaveEndedAndWhoseEndIsCountedGo) {
  World world = World::Training(3);
  world.in.job.status.accounted_pods = {"uid-0", "uid-1", "uid-2"};
  world.End(1, PodPhase::kSucceeded, 0);
  world.End(2, PodPhase::kFailed, 137).Pod(2).deleting = true;
  EXPECT_THAT(Plan(world.in).deletes, IsEmpty())
      << "one that lives, one that may be the job's success, one that goes already";
}

TEST(RemoveEndedTest, OneThatWasToLeaveGoesEvenIfNobodySawItsDrain) {
  World world = World::Training(2);
  world.in.job.status.accounted_pods = {"uid-1"};
  world.End(1, PodPhase::kSucceeded, 0).Pod(1).drain_reason = "node drain";
  EXPECT_THAT(Deleted(Plan(world.in)), ElementsAre("digits-worker-1"));
}

TEST(GrowTest, APodThatEndedWithZeroKeepsItsPlaceUntilItIsEvaluated) {
  World world = World::Training(2);
  world.End(1, PodPhase::kSucceeded, 0);
  EXPECT_THAT(Plan(world.in).creates, IsEmpty());
}

TEST(GrowTest, NamesOfPodsThatStillGoAreTaken) {
  World world(4);
  for (const int i : {0, 1, 5}) world.Pending(i).Pod(i).deleting = true;
  EXPECT_THAT(Created(Plan(world.in)), ElementsAre(2, 3, 4, 6));
}

TEST(GrowTest, TheReasonTellsAStartFromAReplacement) {
  World world(1);
  EXPECT_EQ(Plan(world.in).creates.at(0).reason, "to start the job");
  world = World::Training(2);
  world.Remove(1);
  EXPECT_EQ(Plan(world.in).creates.at(0).reason, "to bring the job back to its size");
}

TEST(LookAgainTest, TheEarliestMomentCounts) {
  World world = World::Training(2);
  world.in.job.spec.run_policy.active_deadline_seconds = 10;
  world.Pod(1).drain_reason = "x";
  world.Pod(1).drain_since = kNow;
  Decision out = Plan(world.in);
  ASSERT_TRUE(out.look_again);
  EXPECT_LE(*out.look_again, milliseconds(10'100)) << "the deadline comes before the grace's end";
  world.in.job.spec.run_policy.active_deadline_seconds = 100;
  EXPECT_LE(*Plan(world.in).look_again, milliseconds(30'100));
}

}  // namespace
}  // namespace ringmaster::planner
