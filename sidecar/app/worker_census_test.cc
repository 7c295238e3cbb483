#include "sidecar/app/worker_census.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const SteadyTime kStart(seconds(100));

class WorkerCensusTest : public testing::Test {
 protected:
  bool Complete(SteadyTime::duration after) {
    return census_.IsComplete(processes_, launcher_, kStart + after);
  }
  WorkerProcesses processes_{2};
  LauncherPeer launcher_{[](uint64_t, const nlohmann::json&) {}};
  WorkerCensus census_{seconds(10)};
};

TEST_F(WorkerCensusTest, TheLaunchersWordCompletesItAndItStaysSo) {
  census_.Start(/*with_view=*/true, kStart);
  EXPECT_FALSE(Complete(seconds(0)));
  launcher_.Connected(1);
  EXPECT_FALSE(Complete(seconds(0))) << "it names the processes that run in a moment";
  processes_.Started({.slot = 0, .incarnation = 1});
  EXPECT_TRUE(Complete(seconds(0)));
  processes_.AddUnheard(1, 1, kStart);
  EXPECT_TRUE(Complete(seconds(0)));
}

TEST_F(WorkerCensusTest, WithoutALauncherEverySlotTellsOrTimePasses) {
  census_.Start(/*with_view=*/true, kStart);
  processes_.Add(0, 1);
  EXPECT_FALSE(Complete(milliseconds(1999)));
  EXPECT_FALSE(census_.IsOverdue(kStart + milliseconds(1999)));
  EXPECT_TRUE(census_.IsOverdue(kStart + seconds(2)));
  processes_.Add(1, 1);
  EXPECT_TRUE(Complete(milliseconds(1999)));
  EXPECT_FALSE(census_.IsOverdue(kStart + seconds(2)));
}

TEST_F(WorkerCensusTest, AWorkerThatAViewNamesIsWaitedForHoweverLong) {
  census_.Start(/*with_view=*/true, kStart);
  processes_.AddUnheard(0, 1, kStart);
  EXPECT_FALSE(Complete(seconds(60)));
  processes_.Started({.slot = 0, .incarnation = 1});
  EXPECT_TRUE(Complete(seconds(60)));
}

TEST_F(WorkerCensusTest, AfterALostStateFileAWorkerOfBeforeIsWaitedForUntilItsFenceHasPassed) {
  census_.Start(/*with_view=*/false, kStart);
  launcher_.Connected(1);
  processes_.Started({.slot = 0, .incarnation = 1, .began = kStart - seconds(1)});
  EXPECT_FALSE(Complete(milliseconds(10999)));
  EXPECT_TRUE(Complete(seconds(11)));
}

TEST_F(WorkerCensusTest, AfterALostStateFileAWorkerThatBeganSinceIsNotWaitedFor) {
  census_.Start(/*with_view=*/false, kStart);
  launcher_.Connected(1);
  processes_.Started({.slot = 0, .incarnation = 1, .began = kStart});
  EXPECT_TRUE(Complete(seconds(0)));
}

}  // namespace
}  // namespace ringmaster::app
