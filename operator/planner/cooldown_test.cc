// Nodes that are avoided for a while because workers were repeatedly killed on them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/planner/testing/nodes.h"

namespace ringmaster::planner {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

struct BlameCase {
  std::string name;
  int exit_code;
  std::string reason;
  bool counted;
  bool avoided;
};

class BlameTable : public testing::TestWithParam<BlameCase> {};

TEST_P(BlameTable, SaysWhichEndOfAPodIsHeldAgainstItsNode) {
  World world = OnThreeNodes();
  world.End(1, PodPhase::kFailed, GetParam().exit_code, GetParam().reason);
  const Decision out = Plan(world.in);
  const api::TroubledNode* node = Troubled(out, "gpu-1");
  EXPECT_EQ(node != nullptr, GetParam().counted);
  EXPECT_EQ(node != nullptr && !node->avoid_until.empty(), GetParam().avoided);
  if (!out.creates.empty()) {
    EXPECT_EQ(!out.creates[0].avoid.empty(), GetParam().avoided);
  }
}

INSTANTIATE_TEST_SUITE_P(
    PlannerTest, BlameTable,
    testing::Values(BlameCase{"Evicted", 137, "Evicted", true, true},
                    BlameCase{"NodeLost", 0, "NodeLost", true, true},
                    BlameCase{"NoDevice", 0, "UnexpectedAdmissionError", true, true},
                    BlameCase{"ADeathBySignal", 137, "", true, false},
                    BlameCase{"OutOfItsOwnMemory", 137, "OOMKilled", false, false},
                    BlameCase{"Preempted", 143, "PreemptionByScheduler", false, false},
                    BlameCase{"EvictedByRequest", 143, "EvictionByEvictionAPI", false, false},
                    BlameCase{"TheScriptsOwnEnd", 1, "", false, false}),
    [](const auto& info) { return info.param.name; });

// A pod that has ended keeps its place for a while. Then it has a successor, and was no fault.
void ExpectSuccessorWithin(seconds pause, World& world) {
  Decision out = Plan(world.in);
  EXPECT_THAT(out.creates, IsEmpty());
  EXPECT_THAT(out.deletes, IsEmpty());
  ASSERT_TRUE(out.look_again);
  EXPECT_LE(*out.look_again, pause);
  world.in.job.status = out.status;
  world.in.now += *out.look_again;
  out = Plan(world.in);
  EXPECT_EQ(out.creates.size(), 1u);
  EXPECT_EQ(out.deletes.size(), 1u);
  EXPECT_EQ(out.status.faults, 0);
}

// As one whose topology manager finds no GPUs beside each other.
TEST(CooldownTest, AKubeletThatRejectsAPodIsAvoidedAndTheNextPodComesAfterAPause) {
  World world = OnThreeNodes();
  PodFacts& pod = world.End(1, PodPhase::kFailed, 0, "TopologyAffinityError").Pod(1);
  pod.exit_code.reset();
  pod.rejected = true;
  pod.accepted_at = world.in.now;
  Decision out = Plan(world.in);
  ASSERT_NE(Troubled(out, "gpu-1"), nullptr);
  ExpectSuccessorWithin(seconds(11), world);
}

// Nothing counts how often a script that ends at its start with an ignored code does so.
TEST(CooldownTest, WhatARuleIgnoresHasASuccessorAtOnceOnlyIfItHasLivedForAWhile) {
  World world = OnThreeNodes();
  world.in.job.spec.failure_policy.rules = {{{1}, {}, api::FailureAction::kIgnore}};
  world.End(1, PodPhase::kFailed, 1);
  world.Pod(1).created = world.in.now - seconds(2);
  ExpectSuccessorWithin(seconds(29), world);
}

TEST(CooldownTest, WorkersThatKeepDyingBySignalsMakeANodeAvoidedForAWhile) {
  World world = OnThreeNodes();
  world.in.job.spec.failure_policy.node_cooldown_seconds = 60;
  world.in.exits = {{"digits-worker-1", 0, 139, true, false},
                    {"digits-worker-1", 0, 137, true, false},
                    {"digits-worker-1", 0, 1, true, false},    // no signal
                    {"digits-worker-1", 0, 143, true, true}};  // requested by us
  Decision out = Plan(world.in);
  ASSERT_NE(Troubled(out, "gpu-1"), nullptr);
  EXPECT_EQ(Troubled(out, "gpu-1")->failures, 2);
  EXPECT_EQ(Troubled(out, "gpu-1")->avoid_until, "");
  world.in.job.status = out.status;
  world.in.exits = {{"digits-worker-1", 0, 137, true, false}};
  world.in.now += seconds(30);
  world.in.job.spec.worker.replicas = 4;
  out = Plan(world.in);
  EXPECT_EQ(Troubled(out, "gpu-1")->avoid_until, "2026-01-31T12:01:30Z");
  EXPECT_THAT(Reasons(out), Contains("NodeCooldown"));
  EXPECT_THAT(out.creates.at(0).avoid, ElementsAre("gpu-1"));
  world.in.job.status = out.status;
  world.in.exits.clear();
  world.in.now += seconds(60);
  out = Plan(world.in);
  EXPECT_THAT(out.creates.at(0).avoid, IsEmpty());
  EXPECT_EQ(Troubled(out, "gpu-1"), nullptr);
}

TEST(CooldownTest, DeathsThatLieFarApartAreForgotten) {
  World world = OnThreeNodes();
  world.in.job.spec.failure_policy.node_cooldown_seconds = 60;
  for (int i = 0; i < 5; ++i) {
    world.in.exits = {{"digits-worker-1", 0, 137, true, false}};
    const Decision out = Plan(world.in);
    EXPECT_EQ(Troubled(out, "gpu-1")->failures, 1);
    world.in.job.status = out.status;
    world.in.now += seconds(60);
  }
}

TEST(CooldownTest, ZeroSecondsMeanNoCooldown) {
  World world = OnThreeNodes();
  world.in.job.spec.failure_policy.node_cooldown_seconds = 0;
  world.End(1, PodPhase::kFailed, 137, "Evicted");
  const Decision out = Plan(world.in);
  EXPECT_THAT(out.status.troubled_nodes, IsEmpty());
  EXPECT_THAT(out.creates.at(0).avoid, IsEmpty());
}

TEST(CooldownTest, ADeathBySignalProlongsTheMemoryAndNotTheAvoidance) {
  World world = OnThreeNodes();
  world.in.job.spec.failure_policy.node_cooldown_seconds = 60;
  world.End(1, PodPhase::kFailed, 137, "Evicted").Settle();
  world.in.now += seconds(30);
  world.in.exits = {{"digits-worker-1", 0, 137, true, false}};
  world.Settle();
  world.in.exits.clear();
  world.in.now += seconds(31);
  const Decision out = Plan(world.in);
  ASSERT_NE(Troubled(out, "gpu-1"), nullptr);
  EXPECT_EQ(Troubled(out, "gpu-1")->failures, 2);
  EXPECT_THAT(out.creates.at(0).avoid, IsEmpty());
}

TEST(CooldownTest, ThatANodeIsAvoidedIsSaidOnce) {
  World world = OnThreeNodes();
  world.End(1, PodPhase::kFailed, 137, "Evicted").Settle();
  world.On(2, "gpu-1").End(2, PodPhase::kFailed, 137, "Evicted");
  const Decision out = Plan(world.in);
  EXPECT_EQ(Troubled(out, "gpu-1")->failures, 2);
  EXPECT_THAT(Reasons(out), testing::Not(Contains("NodeCooldown")));
}

TEST(CooldownTest, NobodyIsBlamedForAPodThatHadNoNodeOrWasToLeave) {
  World world = OnThreeNodes();
  world.End(1, PodPhase::kFailed, 0, "UnexpectedAdmissionError").Pod(1).node.clear();
  world.End(2, PodPhase::kFailed, 143).Pod(2).deleting = true;
  EXPECT_THAT(Plan(world.in).status.troubled_nodes, IsEmpty());
}

TEST(CooldownTest, AWorkerThatEndsWithItsPodIsCountedWithThePod) {
  World world = OnThreeNodes();
  world.in.exits = {{"digits-worker-1", 0, 137, false, false}};
  EXPECT_THAT(Plan(world.in).status.troubled_nodes, IsEmpty());
}

}  // namespace
}  // namespace ringmaster::planner
