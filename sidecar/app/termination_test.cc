#include "sidecar/app/termination.h"

#include <gtest/gtest.h>

namespace ringmaster::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class TerminationTest : public testing::Test {
 protected:
  Termination::Steps At(milliseconds after, const Termination::Situation& situation) {
    return termination_.Next(start_ + after, situation);
  }
  const SteadyTime start_{seconds(100)};
  Termination termination_;
};

TEST(TimeForBoundaryTest, LeavesTimeToResignAndIsNeverNothing) {
  EXPECT_EQ(TimeForBoundary(seconds(30)), seconds(28));
  EXPECT_EQ(TimeForBoundary(seconds(2)), seconds(1));
  EXPECT_EQ(TimeForBoundary(seconds(-1)), milliseconds(250));
}

TEST_F(TerminationTest, StopsTheLauncherOnceAndEndsBeforeTheGracePeriodDoes) {
  EXPECT_FALSE(At(seconds(99), {}).end) << "it has not begun";
  EXPECT_TRUE(termination_.Begin(start_, seconds(30)));
  EXPECT_FALSE(termination_.Begin(start_ + seconds(5), seconds(30)));
  EXPECT_FALSE(At(seconds(27), {.workers_live = true}).stop_launcher);
  EXPECT_TRUE(At(seconds(28), {.workers_live = true}).stop_launcher);
  EXPECT_FALSE(At(seconds(29), {.workers_live = true}).stop_launcher);
  EXPECT_FALSE(At(milliseconds(29499), {.workers_live = true}).end);
  EXPECT_TRUE(At(milliseconds(29500), {.workers_live = true}).end);
}

TEST_F(TerminationTest, LingersAfterTheLastWorkerAndLongerWhereItIsNeeded) {
  termination_.Begin(start_, seconds(30));
  EXPECT_FALSE(At(seconds(1), {}).end);
  EXPECT_FALSE(At(milliseconds(1299), {}).end);
  EXPECT_TRUE(At(milliseconds(1300), {}).end);
  EXPECT_FALSE(At(seconds(20), {.needed = true}).end);
  EXPECT_TRUE(At(milliseconds(29500), {.needed = true}).end);
}

TEST_F(TerminationTest, AtTheEndOfTheJobItLingersFromWhenThatWasKnown) {
  termination_.Begin(start_, seconds(30));
  EXPECT_TRUE(At(seconds(1), {.finishing_since = start_}).end);
}

}  // namespace
}  // namespace ringmaster::app
