#include "collectives/engine/round_timer.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

bool IsDue(const RoundTimer& timer, RoundTimer::Clock::time_point now) {
  return timer.urgent() || now >= timer.due();
}

using std::chrono::microseconds;

TEST(RoundTimerTest, IsDueAtOnceUntilARoundWasFruitless) {
  RoundTimer timer;
  const auto now = RoundTimer::Clock::now();
  EXPECT_TRUE(IsDue(timer, now));
  EXPECT_FALSE(timer.urgent());
  timer.Fruitless(now);
  EXPECT_FALSE(IsDue(timer, now));
  EXPECT_EQ(timer.due(), now + microseconds(200));
  EXPECT_TRUE(IsDue(timer, timer.due()));
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
  EXPECT_TRUE(IsDue(timer, now));
  timer.Fruitless(now);
  EXPECT_EQ(timer.due(), now + microseconds(200));
}

TEST(RoundTimerTest, WhatIsSubmittedEndsThePauseForOneRound) {
  RoundTimer timer;
  const auto now = RoundTimer::Clock::now();
  timer.Fruitless(now);
  timer.Submitted();
  EXPECT_TRUE(timer.urgent());
  EXPECT_TRUE(IsDue(timer, now));
  timer.Begin({});
  EXPECT_FALSE(IsDue(timer, now));
  timer.Restart();
  EXPECT_TRUE(timer.urgent());
  timer.Begin({});
  EXPECT_TRUE(IsDue(timer, now));
}

}  // namespace
}  // namespace ringmaster::engine
