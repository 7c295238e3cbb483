#include "collectives/elastic/step_changes.h"

#include <gtest/gtest.h>

namespace ringmaster::elastic {
namespace {

engine::StepResult ResultOf(uint64_t epoch, uint64_t step, int size) {
  engine::StepResult result;
  result.epoch = epoch;
  result.step = step;
  result.size = size;
  return result;
}

TEST(StepChangesTest, TheFirstStepCountsFromTheViewThatTheWorkerEntered) {
  StepChanges changes;
  changes.Begin({5, {"a", "b", "c"}});
  rm_step_info info{};
  changes.Ended(ResultOf(5, 1, 3), &info);
  EXPECT_FALSE(info.view_changed);
  EXPECT_EQ(info.step, 1u);
  changes.Ended(ResultOf(6, 2, 4), &info);
  EXPECT_TRUE(info.view_changed);
  EXPECT_EQ(info.old_size, 3);
  EXPECT_EQ(info.new_size, 4);
  changes.Ended(ResultOf(6, 3, 4), &info);
  EXPECT_FALSE(info.view_changed);
}

TEST(StepChangesTest, AStepThatNobodyAsksAboutCountsToo) {
  StepChanges changes;
  changes.Ended(ResultOf(7, 1, 2), nullptr);
  rm_step_info info{};
  changes.Ended(ResultOf(7, 2, 2), &info);
  EXPECT_FALSE(info.view_changed);
  EXPECT_EQ(info.old_size, 2);
}

}  // namespace
}  // namespace ringmaster::elastic
