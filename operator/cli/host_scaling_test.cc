#include "operator/cli/host_scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PodSeen Pod(int index, const std::string& node) {
  return {.name = "job-worker-" + std::to_string(index), .node = node, .index = index};
}

constexpr WorkerBounds kOneToEight{1, 8};

TEST(HostScalingTest, AJobHasAsManyWorkersAsThereAreSlotsWithinItsBounds) {
  const struct {
    int slots, workers;
    std::optional<int> replicas;
  } cases[] = {{4, 2, 4}, {4, 4, std::nullopt}, {9, 4, 8}, {9, 8, std::nullopt}, {2, 3, 2}};
  for (const auto& c : cases) {
    const ScaleStep step = PlanScale({.offered = {{"a", c.slots}}}, {}, kOneToEight, c.workers);
    EXPECT_EQ(step.replicas, c.replicas) << c.slots << " slots, " << c.workers << " workers";
    EXPECT_THAT(step.drains, IsEmpty());
  }
}

TEST(HostScalingTest, OfANodeWithFewerSlotsTheLastPodsLeaveBeforeTheJobIsMadeSmaller) {
  RunNodes seen{.pods = {Pod(0, "a"), Pod(2, "a"), Pod(1, "b")}};
  const NodeSlots slots{.offered = {{"a", 1}, {"b", 1}}};
  ScaleStep step = PlanScale(slots, seen, kOneToEight, 3);
  EXPECT_THAT(step.drains, ElementsAre("job-worker-2"));
  EXPECT_FALSE(step.replicas) << "the operator doesn't know yet who leaves";

  seen.pods[1].stays = false;
  seen.pods[1].drain_asked = true;
  step = PlanScale(slots, seen, kOneToEight, 3);
  EXPECT_THAT(step.drains, IsEmpty());
  EXPECT_FALSE(step.replicas);

  seen.pods[1].drain_known = true;
  EXPECT_EQ(PlanScale(slots, seen, kOneToEight, 3).replicas, 2);
}

TEST(HostScalingTest, PodsOnAClosedNodeAreWarnedBeforeTheJobIsMadeSmaller) {
  RunNodes seen{.pods = {Pod(0, "closed"), Pod(1, "b")}};
  const NodeSlots slots{.offered = {{"b", 1}}, .closed = {"closed"}};
  EXPECT_FALSE(PlanScale(slots, seen, kOneToEight, 2).replicas);
  seen.pods[0].warned = true;
  EXPECT_EQ(PlanScale(slots, seen, kOneToEight, 2).replicas, 1);
}

TEST(HostScalingTest, WithTooFewSlotsThoseThatTheJobMustHaveStay) {
  const RunNodes seen{.pods = {Pod(0, "a"), Pod(1, "a"), Pod(2, "a")}};
  const ScaleStep step = PlanScale({.offered = {{"a", 1}}}, seen, {2, 8}, 3);
  EXPECT_THAT(step.drains, ElementsAre("job-worker-2"));
}

TEST(HostScalingTest, PodsOfANodeThatNobodyKnowsHoldNothingUp) {
  const RunNodes seen{.pods = {Pod(0, "unknown"), Pod(1, "b")}};
  EXPECT_EQ(PlanScale({.offered = {{"b", 1}}}, seen, kOneToEight, 2).replicas, 1);
}

}  // namespace
}  // namespace ringmaster::cli
