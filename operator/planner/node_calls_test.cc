// Pods that stand Pending so that an autoscaler makes nodes for them, and pods that autoscalers
// must not move.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/labels.h"
#include "operator/planner/testing/world.h"

namespace ringmaster::planner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::chrono::seconds kWithin{900};

// A job that needs two of its three pods, none of which fits.
class NodeCallTest : public testing::Test {
 protected:
  NodeCallTest() {
    world_.in.job.spec.elastic_policy.min_replicas = 2;
    world_.in.gang_fit = scheduler::GangFit{.why = "Insufficient gpu", .calls_for_nodes = true};
    world_.in.nodes_within = kWithin;
  }
  // The job's first two pods are there, and the scheduler refuses them.
  void Call() {
    world_.in.gang_fit->calls_for_nodes = false;
    for (const int i : {0, 1}) {
      PodFacts& pod = world_.Pending(i).Pod(i);
      pod.calls_for_nodes = true;
      pod.waiting = "Unschedulable: 0/1 nodes are available";
    }
  }
  static std::vector<int> Callers(const Decision& decision) {
    std::vector<int> indexes;
    for (const PodCreate& pod : decision.creates) {
      if (pod.calls_for_nodes) indexes.push_back(pod.index);
    }
    return indexes;
  }
  static const api::Condition& Scheduled(const Decision& decision) {
    return *decision.status.Find("Scheduled");
  }
  World world_{3};
};

TEST_F(NodeCallTest, AsManyPodsAsItNeedsStandPendingAndTheConditionSaysSo) {
  world_.in.gang_fit->domain = "r1";
  const Decision decision = Plan(world_.in);
  EXPECT_THAT(Callers(decision), ElementsAre(0, 1));
  EXPECT_EQ(decision.creates.size(), 2u);
  EXPECT_EQ(decision.least_creates, 2) << "one alone is of no use";
  EXPECT_EQ(decision.kept_back, 1);
  EXPECT_EQ(decision.creates.front().domain, "r1");
  EXPECT_FALSE(Scheduled(decision).status);
  EXPECT_EQ(Scheduled(decision).reason, "WaitingForNodes");
  EXPECT_THAT(Scheduled(decision).message, HasSubstr("2 pods stand Pending from now on"));
  ASSERT_EQ(decision.events.size(), 1u);
  EXPECT_EQ(decision.events.front().reason, "WaitingForNodes");
  EXPECT_FALSE(decision.events.front().warning);
}

TEST_F(NodeCallTest, WithoutACallTheyWaitForRoom) {
  world_.in.gang_fit->calls_for_nodes = false;
  const Decision decision = Plan(world_.in);
  EXPECT_THAT(decision.creates, IsEmpty());
  EXPECT_EQ(Scheduled(decision).reason, "WaitingForRoom");
  EXPECT_FALSE(decision.calls_for_nodes);
}

TEST_F(NodeCallTest, WhatCouldNotBeMadeAtOnceFollows) {
  world_.Pending(0).Pod(0).calls_for_nodes = true;
  world_.Pod(0).waiting = "Unschedulable: 0/1 nodes are available";
  EXPECT_THAT(Callers(Plan(world_.in)), ElementsAre(1));
}

TEST_F(NodeCallTest, WhosePodsAreRefusedCallsForNothing) {
  world_.in.creation_waits = true;
  EXPECT_THAT(Callers(Plan(world_.in)), IsEmpty());
}

TEST_F(NodeCallTest, WhileItCallsTheConditionSaysUntilWhen) {
  Call();
  const Decision decision = Plan(world_.in);
  EXPECT_TRUE(decision.calls_for_nodes);
  EXPECT_THAT(decision.creates, IsEmpty());
  EXPECT_EQ(Scheduled(decision).reason, "WaitingForNodes");
  EXPECT_THAT(Scheduled(decision).message,
              HasSubstr("2 pods stand Pending since 2026-01-31T12:00:00Z"));
  EXPECT_THAT(Scheduled(decision).message, HasSubstr("come by 2026-01-31T12:15:00Z"));
  EXPECT_THAT(Scheduled(decision).message, HasSubstr("Insufficient gpu")) << "for the third";
}

TEST_F(NodeCallTest, NodesMayTakeAsLongAsTheBoundAndThenAllIsGivenBack) {
  Call();
  world_.Pod(0).scheduled = true;
  world_.Pod(0).waiting.clear();
  world_.in.now = kNow + kWithin - std::chrono::seconds(1);
  EXPECT_THAT(Deleted(Plan(world_.in)), IsEmpty());
  world_.in.now = kNow + kWithin;
  const Decision decision = Plan(world_.in);
  EXPECT_THAT(Deleted(decision), ElementsAre("digits-worker-0", "digits-worker-1"));
  EXPECT_EQ(decision.status.times_given_back, 1);
  ASSERT_FALSE(decision.events.empty());
  EXPECT_THAT(decision.events.front().message, HasSubstr("within 900 s"));
}

TEST_F(NodeCallTest, TheBoundHoldsAlsoWhereNoSchedulerHasLookedAtThePods) {
  Call();
  for (const int i : {0, 1}) world_.Pod(i).waiting.clear();
  world_.in.now = kNow + kWithin;
  const Decision decision = Plan(world_.in);
  EXPECT_EQ(Deleted(decision).size(), 2u);
  ASSERT_FALSE(decision.events.empty());
  EXPECT_THAT(decision.events.front().message, HasSubstr("no scheduler has looked at it"));
}

TEST_F(NodeCallTest, WhereNoAutoscalerHearsAnyMoreTheyAreGivenBackSoon) {
  Call();
  world_.in.nodes_within.reset();
  world_.in.now = kNow + std::chrono::seconds(60);
  EXPECT_EQ(Deleted(Plan(world_.in)).size(), 2u);
}

TEST_F(NodeCallTest, ItCallsNoMoreWhenItsPodsHaveNodes) {
  Call();
  for (const int i : {0, 1}) world_.Pod(i).scheduled = true;
  const Decision decision = Plan(world_.in);
  EXPECT_FALSE(decision.calls_for_nodes);
  EXPECT_EQ(Scheduled(decision).reason, "WaitingForRoom") << "the third does";
}

// A training job has its state, so its further pods wait like any others.
TEST(NodeCallOfAJobThatTrains, ThePodsThatItLacksStandPendingWithoutABound) {
  World world = World::Training(2);
  world.in.job.spec.elastic_policy.min_replicas = 2;
  world.Remove(1).Pending(1);
  PodFacts& pod = world.Pod(1);
  pod.calls_for_nodes = true;
  pod.waiting = "Unschedulable: 0/1 nodes are available";
  world.in.gang_fit = scheduler::GangFit();
  world.in.nodes_within = kWithin;
  world.in.now = kNow + 2 * kWithin;
  const Decision decision = Plan(world.in);
  EXPECT_THAT(Deleted(decision), IsEmpty());
  EXPECT_FALSE(decision.calls_for_nodes) << "it takes nobody's turn";
  EXPECT_EQ(decision.status.Find("Scheduled")->reason, "WaitingForNodes");
}

TEST(ShieldTest, PodsAreShieldedWhileTheJobHasYetToStart) {
  World world(2);
  for (const PodCreate& create : Plan(world.in).creates) EXPECT_TRUE(create.shielded);
  World trains = World::Training(2);
  trains.in.job.spec.worker.replicas = 3;
  const Decision decision = Plan(trains.in);
  ASSERT_EQ(decision.creates.size(), 1u);
  EXPECT_FALSE(decision.creates.front().shielded);
}

TEST(ShieldTest, AShieldIsLoweredWhenThePodTrains) {
  World world = World::Training(2);
  world.Pod(0).shields = {"a", "b"};
  world.Pod(1).shields = {"a"};
  world.Sidecar(1).able = false;  // it has yet to install the view
  std::vector<std::string> lowered;
  for (const PodAnnotate& annotation : Plan(world.in).annotations) {
    if (!annotation.value.empty()) continue;  // another annotation is written
    if (annotation.name == "digits-worker-0") lowered.push_back(annotation.key);
    EXPECT_FALSE(annotation.name == "digits-worker-1" && annotation.key == "a");
  }
  EXPECT_THAT(lowered, ElementsAre("a", "b", api::kShieldAnnotation));
}

TEST(ShieldTest, AShieldIsLoweredOnAPodThatNeverJoinsWhenTheOthersTrain) {
  World world = World::Training(2);
  world.in.job.spec.worker.replicas = 3;
  world.Pending(2).Pod(2).shields = {"a"};
  std::vector<std::string> lowered;
  for (const PodAnnotate& annotation : Plan(world.in).annotations) {
    if (annotation.name == "digits-worker-2" && annotation.value.empty())
      lowered.push_back(annotation.key);
  }
  EXPECT_THAT(lowered, ElementsAre("a", api::kShieldAnnotation));
}

}  // namespace
}  // namespace ringmaster::planner
