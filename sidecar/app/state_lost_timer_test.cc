#include "sidecar/app/state_lost_timer.h"

#include <gtest/gtest.h>

namespace ringmaster::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Event = StateLostTimer::Event;

const SteadyTime kStart(seconds(100));

TEST(StateLostTimerTest, WithoutAnOperatorItGivesUpSoonAndOnce) {
  StateLostTimer timer(false, seconds(600));
  EXPECT_EQ(timer.Update(true, false, kStart), Event::kLost);
  EXPECT_EQ(timer.Update(true, false, kStart + milliseconds(1999)), Event::kNone);
  EXPECT_EQ(timer.Update(true, false, kStart + seconds(2)), Event::kGiveUp);
  EXPECT_EQ(timer.Update(true, false, kStart + seconds(9)), Event::kNone);
}

TEST(StateLostTimerTest, AConnectedOperatorIsWaitedForAndAStateThatIsFoundAgainStartsAnew) {
  StateLostTimer timer(true, seconds(600));
  EXPECT_EQ(timer.Update(true, true, kStart), Event::kLost);
  EXPECT_EQ(timer.Update(true, true, kStart + seconds(5000)), Event::kNone);
  EXPECT_EQ(timer.Update(true, false, kStart + seconds(5599)), Event::kNone);
  EXPECT_EQ(timer.Update(false, false, kStart + seconds(5600)), Event::kNone);
  EXPECT_EQ(timer.Update(true, false, kStart + seconds(5601)), Event::kLost);
  EXPECT_EQ(timer.Update(true, false, kStart + seconds(6201)), Event::kGiveUp);
}

}  // namespace
}  // namespace ringmaster::app
