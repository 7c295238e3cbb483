#include "collectives/engine/step_boundary.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

std::shared_ptr<Operation> StepEnd() {
  Request request;
  request.name = kStepEndName;
  request.kind = Kind::kStepEnd;
  return std::make_shared<Operation>(std::move(request), nullptr, nullptr);
}

TEST(StepBoundaryTest, AUserThatStandsThereIsReleasedWithTheStepItHasEnded) {
  StepBoundary boundary;
  const auto operation = StepEnd();
  boundary.Reach(operation);
  EXPECT_TRUE(boundary.standing());
  EXPECT_FALSE(operation->done());
  boundary.set_synced(true);
  EXPECT_TRUE(boundary.Release(5, 3));
  ASSERT_TRUE(operation->done());
  EXPECT_TRUE(operation->status().ok());
  EXPECT_EQ(operation->step.step, 1u);
  EXPECT_EQ(operation->step.epoch, 5u);
  EXPECT_EQ(operation->step.size, 3);
  EXPECT_TRUE(operation->step.state_synced);
  EXPECT_FALSE(boundary.standing());
  EXPECT_FALSE(boundary.Release(5, 3));
}

TEST(StepBoundaryTest, ARankStandsThereAlsoWithoutACallOfItsUser) {
  StepBoundary boundary;
  boundary.Reach(nullptr);
  EXPECT_TRUE(boundary.standing());
  EXPECT_FALSE(boundary.Release(5, 3)) << "no user is let go";
  EXPECT_FALSE(boundary.standing());
}

TEST(StepBoundaryTest, ThatStateWasGivenCountsForOneBoundary) {
  StepBoundary boundary;
  boundary.set_synced(true);
  const auto operation = StepEnd();
  boundary.Reach(operation);
  boundary.Release(5, 3);
  EXPECT_FALSE(operation->step.state_synced);
}

TEST(StepBoundaryTest, OnlyTheNewestArmedViewIsDisarmed) {
  StepBoundary boundary;
  boundary.Arm(4);
  boundary.Arm(3);
  EXPECT_TRUE(boundary.armed(4));
  EXPECT_FALSE(boundary.Disarm(3));
  EXPECT_TRUE(boundary.armed(4));
  EXPECT_TRUE(boundary.Disarm(4));
  EXPECT_FALSE(boundary.armed(4));
}

TEST(StepBoundaryTest, AnEndFailsTheStepThatWaits) {
  StepBoundary boundary;
  const auto operation = StepEnd();
  boundary.Reach(operation);
  EXPECT_EQ(boundary.step(), 1u);
  boundary.Fail({RM_ERR_LEFT, "drained"});
  EXPECT_EQ(operation->status().code(), RM_ERR_LEFT);
  EXPECT_FALSE(boundary.standing());
}

}  // namespace
}  // namespace ringmaster::engine
