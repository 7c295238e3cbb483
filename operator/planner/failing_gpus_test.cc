// Pods that leave because a GPU of theirs fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/labels.h"
#include "operator/planner/testing/nodes.h"

namespace ringmaster::planner {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

job::GpuHealth Fallen() {
  return {.slot = 0, .gpu = "0000:17:00.0", .failing = "Xid 79, it has fallen off the bus"};
}

// Three training pods, of which `min` are needed; the GPU of the second fails.
World WithFailingGpu(int min) {
  World world = OnThreeNodes();
  world.in.job.spec.elastic_policy.min_replicas = min;
  world.Sidecar(1).failing_gpus = {Fallen()};
  return world;
}

// Applies what was decided about pods, as the controller does.
void Apply(World& world, const Decision& out) {
  world.in.job.status = out.status;
  for (PodFacts& pod : world.in.pods) {
    for (const PodAnnotate& note : out.annotations) {
      if (pod.name != note.name) continue;
      if (note.key == api::kWarnedAnnotation) pod.warned = note.value;
      if (note.key == api::kWarnedSinceAnnotation) pod.warned_since = api::ParseTime(note.value);
    }
    for (const PodDrain& drain : out.drains) {
      if (pod.name != drain.name) continue;
      pod.drain_reason = drain.reason;
      pod.drain_since = world.in.now;
    }
  }
}

TEST(FailingGpuTest, ThePodIsDrainedAtOnceAndReplacedOnAnotherNode) {
  World world = WithFailingGpu(2);
  const Decision out = Plan(world.in);
  ASSERT_THAT(Drained(out), ElementsAre("digits-worker-1"));
  EXPECT_EQ(out.drains[0].reason, "GpuUnhealthy");
  ASSERT_EQ(out.creates.size(), 1u);
  EXPECT_THAT(out.creates[0].avoid, ElementsAre("gpu-1"));
  ASSERT_NE(Troubled(out, "gpu-1"), nullptr);
  EXPECT_EQ(Troubled(out, "gpu-1")->reason, "GpuUnhealthy");
  EXPECT_NE(Troubled(out, "gpu-1")->avoid_until, "");
}

TEST(FailingGpuTest, TheEventNamesPodNodeGpuAndReason) {
  const Decision out = Plan(WithFailingGpu(2).in);
  ASSERT_THAT(Reasons(out), Contains("GpuUnhealthy"));
  for (const Event& event : out.events) {
    if (event.reason != "GpuUnhealthy") continue;
    EXPECT_TRUE(event.warning);
    EXPECT_EQ(event.pod, "digits-worker-1");
    EXPECT_EQ(event.message,
              "pod digits-worker-1 on node gpu-1 leaves at the end of a step: GPU 0000:17:00.0 of "
              "worker 0 fails: Xid 79, it has fallen off the bus");
  }
}

TEST(FailingGpuTest, ItIsDrainedAndSaidAndHeldAgainstTheNodeOnce) {
  World world = WithFailingGpu(2);
  Apply(world, Plan(world.in));
  const Decision out = Plan(world.in);
  EXPECT_THAT(Drained(out), IsEmpty());
  EXPECT_THAT(Reasons(out), Not(Contains("GpuUnhealthy")));
  EXPECT_EQ(Troubled(out, "gpu-1")->failures, 1);
}

TEST(FailingGpuTest, ALookBeforeTheMarkIsSeenHoldsNothingMoreAgainstTheNode) {
  World world = WithFailingGpu(2);
  world.in.job.status = Plan(world.in).status;
  EXPECT_EQ(Troubled(Plan(world.in), "gpu-1")->failures, 1);
}

TEST(FailingGpuTest, WhereAllPodsAreNeededTheReplacementTrainsFirst) {
  World world = WithFailingGpu(3);
  Decision out = Plan(world.in);
  EXPECT_THAT(Drained(out), IsEmpty());
  EXPECT_THAT(Created(out), ElementsAre(3));
  Apply(world, out);
  world.Running(3).Ready(3).On(3, "gpu-3").View(2, 4);
  world.in.now += seconds(5);
  out = Plan(world.in);
  EXPECT_THAT(Drained(out), ElementsAre("digits-worker-1"));
}

TEST(FailingGpuTest, TheReplacementIsNotWaitedForWithoutEnd) {
  World world = WithFailingGpu(3);
  Apply(world, Plan(world.in));
  world.in.now += seconds(19);
  EXPECT_THAT(Drained(Plan(world.in)), IsEmpty());
  world.in.now += seconds(1);
  EXPECT_THAT(Drained(Plan(world.in)), ElementsAre("digits-worker-1"));
}

TEST(FailingGpuTest, ThePodThatAloneHasTheStateStaysUntilItsReplacementTrains) {
  World world = World::Training(1);
  world.On(0, "gpu-0").Sidecar(0).failing_gpus = {Fallen()};
  Apply(world, Plan(world.in));
  world.in.now += seconds(600);
  EXPECT_THAT(Drained(Plan(world.in)), IsEmpty());
  world.Running(1).Ready(1).On(1, "gpu-1").View(2, 2);
  EXPECT_THAT(Drained(Plan(world.in)), ElementsAre("digits-worker-0"));
}

TEST(FailingGpuTest, WhatIsWrittenOnThePodHoldsWhileItsSidecarHasYetToConnect) {
  World world = WithFailingGpu(3);
  Apply(world, Plan(world.in));
  world.Sidecar(1).failing_gpus.clear();
  world.Sidecar(1).connected = false;
  const Decision out = Plan(world.in);
  EXPECT_THAT(out.annotations, IsEmpty());
  EXPECT_THAT(Reasons(out), Not(Contains("DisruptionOver")));
  world.in.now += seconds(20);
  EXPECT_THAT(Drained(Plan(world.in)), ElementsAre("digits-worker-1"));
}

TEST(FailingGpuTest, OfANodeThatIsNotKnownThePodLeavesToo) {
  World world = WithFailingGpu(2);
  world.in.nodes.clear();
  EXPECT_THAT(Drained(Plan(world.in)), ElementsAre("digits-worker-1"));
}

TEST(FailingGpuTest, AGpuWithoutAReasonDoesNothing) {
  World world = OnThreeNodes();
  world.Sidecar(1).failing_gpus = {{.slot = 0, .gpu = "0000:17:00.0"}};
  const Decision out = Plan(world.in);
  EXPECT_THAT(Drained(out), IsEmpty());
  EXPECT_THAT(out.status.troubled_nodes, IsEmpty());
}

TEST(FailingGpuTest, NobodyIsDrainedFromAJobThatHasEnded) {
  World world = WithFailingGpu(2);
  world.in.job.status.conditions.push_back({.type = "Failed", .status = true});
  EXPECT_THAT(Drained(Plan(world.in)), IsEmpty());
}

TEST(FailingGpuTest, WithoutACooldownThePodLeavesAndNoNodeIsAvoided) {
  World world = WithFailingGpu(2);
  world.in.job.spec.failure_policy.node_cooldown_seconds = 0;
  const Decision out = Plan(world.in);
  EXPECT_THAT(Drained(out), ElementsAre("digits-worker-1"));
  EXPECT_THAT(out.creates.at(0).avoid, IsEmpty());
}

}  // namespace
}  // namespace ringmaster::planner
