// Exits of workers that a new operator hears of again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/planner/planner.h"
#include "operator/planner/testing/world.h"

namespace ringmaster::planner {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

job::WorkerExit Crash(int pod, int slot, std::uint64_t incarnation) {
  return {.pod_name = PodName("digits", pod),
          .slot = slot,
          .exit_code = 139,
          .restarting = true,
          .incarnation = incarnation,
          .pod_uid = World::Uid(pod)};
}

job::WorkerExit ToldAgain(job::WorkerExit exit) {
  exit.told_before = true;
  return exit;
}

// The status after an operator has heard of these exits.
api::Status Counted(World& world, std::vector<job::WorkerExit> exits) {
  world.in.exits = std::move(exits);
  world.Settle();
  world.in.exits.clear();
  return world.in.job.status;
}

TEST(CountedExitsTest, WhatIsCountedIsNotCountedAgain) {
  World world = World::Training(2);
  EXPECT_EQ(Counted(world, {Crash(0, 0, 1), Crash(0, 0, 2)}).worker_restarts, 2);
  for (const std::uint64_t incarnation : {1, 2}) {
    const api::Status status = Counted(world, {ToldAgain(Crash(0, 0, incarnation))});
    EXPECT_EQ(status.worker_restarts, 2);
    EXPECT_EQ(status.faults, 2);
  }
  EXPECT_EQ(Counted(world, {Crash(0, 0, 2)}).worker_restarts, 2)
      << "a stream that broke has handed it back though it had arrived";
}

TEST(CountedExitsTest, WhatTheOperatorOfBeforeHeardOfAndDidNotCountIsCounted) {
  World world = World::Training(2);
  Counted(world, {Crash(0, 0, 1)});
  const api::Status status = Counted(world, {ToldAgain(Crash(0, 0, 1)), ToldAgain(Crash(0, 0, 2)),
                                             ToldAgain(Crash(0, 1, 1)), ToldAgain(Crash(1, 0, 1))});
  EXPECT_EQ(status.worker_restarts, 4);
  EXPECT_EQ(status.faults, 4);
  EXPECT_THAT(status.counted_exits, SizeIs(3)) << "one for each slot";
}

// An operator of an earlier version has counted, or the schema of the API server is older.
TEST(CountedExitsTest, WhereNoListWasKeptNothingIsCountedThatIsToldAgain) {
  World world = World::Training(2);
  Counted(world, {Crash(0, 0, 1)});
  world.in.job.status.counted_exits.clear();
  world.in.job.status.counted_exits_omitted.reset();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Counted(world, {ToldAgain(Crash(0, 0, 1))}).worker_restarts, 1 + i);
    EXPECT_EQ(Counted(world, {Crash(1, 0, 1u + i)}).worker_restarts, 2 + i);
  }
  world.in.pods.clear();
  EXPECT_EQ(Counted(world, {}).counted_exits_omitted, 0);
}

TEST(CountedExitsTest, NothingIsNotedOfExitsThatAreNotCounted) {
  World world = World::Training(2);
  job::WorkerExit asked_for = Crash(0, 0, 1), with_its_pod = Crash(1, 0, 1);
  asked_for.by_us = true;
  with_its_pod.restarting = false;
  EXPECT_THAT(Counted(world, {asked_for, with_its_pod}).counted_exits, IsEmpty());
}

TEST(CountedExitsTest, TheyAreForgottenWithTheirPods) {
  World world = World::Training(2);
  Counted(world, {Crash(0, 0, 1), Crash(1, 0, 1)});
  world.Remove(1);
  EXPECT_THAT(Counted(world, {}).counted_exits, SizeIs(1));
  EXPECT_EQ(Counted(world, {ToldAgain(Crash(1, 0, 1))}).worker_restarts, 2)
      << "nobody knows any more whether it is counted";
  EXPECT_EQ(Counted(world, {Crash(1, 0, 2)}).worker_restarts, 3);
}

}  // namespace
}  // namespace ringmaster::planner
