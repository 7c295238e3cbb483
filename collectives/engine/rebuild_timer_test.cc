#include "collectives/engine/rebuild_timer.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

using std::chrono::seconds;

TEST(RebuildTimerTest, AddsUpTheStagesOfOneRebuild) {
  RebuildTimer timer;
  const auto now = RebuildTimer::Clock::now();
  timer.Stopped(now - seconds(6), now - seconds(5));
  timer.Begin(now - seconds(5));
  timer.Connected(7, "WorkerLost", seconds(2));
  timer.Redone(now, seconds(3), false);
  ASSERT_TRUE(timer.pending());
  const RebuildTimes& times = timer.Resumed(now + seconds(4));
  EXPECT_FALSE(timer.pending());
  EXPECT_EQ(times.epoch, 7u);
  EXPECT_EQ(times.reason, "WorkerLost");
  EXPECT_EQ(times.stop, 1);
  EXPECT_EQ(times.connect, 2);
  EXPECT_EQ(times.redo, 3);
  EXPECT_EQ(times.resume, 4);
}

TEST(RebuildTimerTest, TheDecisionBeginsWithTheFirstSignThatTheViewIsOver) {
  const auto now = RebuildTimer::Clock::now();
  RebuildTimer timer;
  timer.Broke(now);
  timer.Broke(now + seconds(1));
  timer.Stopped(now + seconds(2), now + seconds(3));
  timer.Begin(now + seconds(4));
  RebuildTimes times = timer.Resumed(now + seconds(5));
  EXPECT_EQ(times.noticed, now);
  EXPECT_EQ(times.stop_asked, now + seconds(2));
  EXPECT_EQ(times.decided, now + seconds(4));

  timer.Broke(now + seconds(11));
  timer.Stopped(now + seconds(10), now + seconds(12));
  timer.Stopped(now + seconds(13), now + seconds(13));
  timer.Begin(now + seconds(14));
  times = timer.Resumed(now + seconds(15));
  EXPECT_EQ(times.noticed, now + seconds(10)) << "the stop has broken it";

  timer.Begin(now + seconds(20));
  EXPECT_EQ(timer.Resumed(now + seconds(21)).noticed, now + seconds(20)) << "no sign came before";
}

TEST(RebuildTimerTest, WhatIsRebuiltBeforeARestEndsWhereTheRestBegins) {
  RebuildTimer timer;
  const auto now = RebuildTimer::Clock::now();
  timer.Redone(now, seconds(3), false);
  timer.Rest(now + seconds(1));
  ASSERT_TRUE(timer.pending());
  const RebuildTimes& times = timer.Resumed(now + seconds(60));
  EXPECT_EQ(times.resume, 1);
  EXPECT_EQ(times.end, now + seconds(1));
  timer.Redone(now + seconds(70), seconds(3), false);
  EXPECT_EQ(timer.Resumed(now + seconds(72)).resume, 2) << "that rest is over";
}

TEST(RebuildTimerTest, TheFirstViewOfAWorkerRebuildsNothing) {
  RebuildTimer timer;
  timer.Connected(1, "Bootstrap", seconds(1));
  timer.Redone(RebuildTimer::Clock::now(), seconds(1), true);
  EXPECT_FALSE(timer.pending());
}

TEST(RebuildTimerTest, ARebuildThatAnotherViewInterruptsIsNotReported) {
  RebuildTimer timer;
  timer.Redone(RebuildTimer::Clock::now(), seconds(1), false);
  timer.Begin(RebuildTimer::Clock::now());
  EXPECT_FALSE(timer.pending());
}

TEST(RebuildTimerTest, AStopForgetsTheTimesOfTheRebuildBefore) {
  RebuildTimer timer;
  const auto now = RebuildTimer::Clock::now();
  timer.Connected(7, "WorkerLost", seconds(2));
  timer.Redone(now, seconds(3), false);
  timer.Stopped(now - seconds(9), now);
  const RebuildTimes& times = timer.Resumed(now);
  EXPECT_EQ(times.epoch, 0u);
  EXPECT_EQ(times.stop, 9);
  EXPECT_EQ(times.redo, 0);
}

}  // namespace
}  // namespace ringmaster::engine
