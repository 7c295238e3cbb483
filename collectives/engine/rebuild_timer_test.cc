#include "collectives/engine/rebuild_timer.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

using std::chrono::seconds;

TEST(RebuildTimerTest, AddsUpTheStagesOfOneRebuild) {
  RebuildTimer timer;
  const auto now = RebuildTimer::Clock::now();
  timer.Stopped(seconds(1));
  timer.Begin();
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
  timer.Begin();
  EXPECT_FALSE(timer.pending());
}

TEST(RebuildTimerTest, AStopForgetsTheTimesOfTheRebuildBefore) {
  RebuildTimer timer;
  const auto now = RebuildTimer::Clock::now();
  timer.Connected(7, "WorkerLost", seconds(2));
  timer.Redone(now, seconds(3), false);
  timer.Stopped(seconds(9));
  const RebuildTimes& times = timer.Resumed(now);
  EXPECT_EQ(times.epoch, 0u);
  EXPECT_EQ(times.stop, 9);
  EXPECT_EQ(times.redo, 0);
}

}  // namespace
}  // namespace ringmaster::engine
