#include "collectives/engine/round_timer.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

using std::chrono::microseconds;

TEST(RoundTimerTest, IsDueAtOnceUntilARoundWasFruitless) {
  RoundTimer timer;
  const auto now = RoundTimer::Clock::now();
  EXPECT_TRUE(timer.Due(now));
  EXPECT_FALSE(timer.urgent());
  timer.Fruitless(now);
  EXPECT_FALSE(timer.Due(now));
  EXPECT_EQ(timer.due(), now + microseconds(200));
  EXPECT_TRUE(timer.Due(timer.due()));
}

TEST(RoundTimerTest, PausesDoubleUpToTwentyMillisecondsAndBeginAnew) {
  RoundTimer timer;
  const auto now = RoundTimer::Clock::now();
  microseconds expected{200};
  for (int i = 0; i < 12; ++i) {
    timer.Fruitless(now);
    EXPECT_EQ(timer.due(), now + expected);
    expected = std::min(expected * 2, microseconds(20000));
  }
  timer.Fruitful();
  EXPECT_TRUE(timer.Due(now));
  timer.Fruitless(now);
  EXPECT_EQ(timer.due(), now + microseconds(200));
}

TEST(RoundTimerTest, WhatIsSubmittedEndsThePauseForOneRound) {
  RoundTimer timer;
  const auto now = RoundTimer::Clock::now();
  timer.Fruitless(now);
  timer.Submitted();
  EXPECT_TRUE(timer.urgent());
  EXPECT_TRUE(timer.Due(now));
  timer.Begin({});
  EXPECT_FALSE(timer.Due(now));
  timer.Restart();
  EXPECT_TRUE(timer.urgent());
  timer.Begin({});
  EXPECT_TRUE(timer.Due(now));
}

}  // namespace
}  // namespace ringmaster::engine
