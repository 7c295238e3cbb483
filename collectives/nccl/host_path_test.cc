// Views in which the ranks go through the host's memory after views in which NCCL connected them,
// on all of them or on some.
#include <gmock/gmock.h>

#include "collectives/nccl/connect_plan.h"
#include "collectives/nccl/gpu_test_world.h"
#include "collectives/nccl/sums_on_gpus.h"

namespace ringmaster::nccl {
namespace {

using std::chrono::seconds;

constexpr WaitLimits kShort = {
    .connect = seconds(2), .collective = seconds(3), .quiet = seconds(3)};

TEST(HostPathTest, AJoinerWithoutNcclTakesAllThroughTheHostWhateverTheOthersHave) {
  GpuTestWorld gpus(3, {.without_nccl = {2}, .limits = kShort});
  gpus.world.Install({0, 1});
  gpus.world.Enter({0, 1});
  SumIs(&gpus, {0, 1}, 2);
  gpus.world.Stop({0, 1});
  gpus.world.Install({0, 1, 2}, "ScaleUp", true, /*planned=*/true);
  gpus.world.Enter({0, 1, 2});
  SumIs(&gpus, {0, 1, 2}, 3);
  for (int id : {0, 1}) EXPECT_EQ(gpus.process(id).communicators(), 0) << "worker " << id;
  gpus.world.Stop({0, 1, 2});
  gpus.world.Install({0, 1}, "ScaleDown", true, /*planned=*/true);
  SumIs(&gpus, {0, 1}, 2);
  EXPECT_EQ(gpus.cluster.made()["init"], 4) << "NCCL again, without the third";
}

// Worker 0 has a communicator after each attempt, worker 1 has none.
TEST(HostPathTest, WhatConnectsOnOneRankAndFailsOnTheOtherGoesThroughTheHostOnBoth) {
  GpuTestWorld gpus(2, {.limits = kShort});
  gpus.process(1).comes_to_connect = [] { return true; };
  gpus.process(0).comes_to_connect = [&] {
    while (gpus.process(1).communicators() == 0) std::this_thread::yield();
    gpus.process(1).FailCommunicators();
    return true;
  };
  const uint64_t epoch = gpus.world.Install({0, 1});
  gpus.world.Enter({0, 1});
  const Repairs repairs(&gpus, {0, 1}, epoch);
  for (int step = 0; step < 3; ++step) SumIs(&gpus, {0, 1}, 2);
  EXPECT_EQ(gpus.cluster.made()["init"], 2 * kMostFailedConnects);
  for (int id : {0, 1}) EXPECT_EQ(gpus.process(id).communicators(), 0) << "worker " << id;
}

}  // namespace
}  // namespace ringmaster::nccl
