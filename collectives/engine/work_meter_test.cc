#include "collectives/engine/work_meter.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

class WorkMeterTest : public testing::Test {
 protected:
  WorkMeterTest() { meter_.Begin(At(0)); }
  static WorkMeter::Clock::time_point At(int second) {
    return WorkMeter::Clock::time_point() + std::chrono::seconds(1000 + second);
  }

  WorkMeter meter_;
};

TEST_F(WorkMeterTest, BeforeTheFirstViewThereIsNoTime) {
  EXPECT_EQ(WorkMeter().At(At(5)), job::WorkerTimes());
}

TEST_F(WorkMeterTest, WaitsFromAskingToRunningAndRunsFromThere) {
  meter_.Asked(At(1));
  meter_.Runs(At(4));
  meter_.Ran(At(6), 100, false);
  EXPECT_EQ(meter_.At(At(10)),
            (job::WorkerTimes{.seconds = 10, .waiting = 3, .running = 2, .bytes = 100}));
}

TEST_F(WorkMeterTest, WhatIsAskedForWhileAnotherWaitsOrRunsCountsOnce) {
  meter_.Asked(At(1));
  meter_.Asked(At(2));
  meter_.Runs(At(3));
  meter_.Asked(At(4));
  meter_.Ran(At(5), 1, true);
  meter_.Runs(At(8));
  meter_.Ran(At(9), 2, false);
  EXPECT_EQ(meter_.At(At(9)),
            (job::WorkerTimes{.seconds = 9, .waiting = 5, .running = 3, .bytes = 3}));
}

TEST_F(WorkMeterTest, ALookInTheMiddleCountsWhatHasPassed) {
  meter_.Asked(At(1));
  EXPECT_EQ(meter_.At(At(3)).waiting, 2);
  meter_.Runs(At(4));
  EXPECT_EQ(meter_.At(At(6)).running, 2);
  EXPECT_EQ(meter_.At(At(6)).waiting, 3);
}

TEST_F(WorkMeterTest, WhatHasFailedWaitsNoLonger) {
  meter_.Asked(At(1));
  meter_.Clear(At(2));
  EXPECT_EQ(meter_.At(At(9)).waiting, 1);
}

TEST_F(WorkMeterTest, IsBlockedWhileAnyThreadIs) {
  meter_.Blocks(At(1));
  EXPECT_EQ(meter_.At(At(2)).blocked, 1);
  meter_.Blocks(At(2));
  meter_.Unblocks(At(3));
  meter_.Unblocks(At(5));
  EXPECT_EQ(meter_.At(At(9)).blocked, 4);
}

}  // namespace
}  // namespace ringmaster::engine
