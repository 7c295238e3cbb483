#include "collectives/algorithms/shm_peers.h"

#include <gtest/gtest.h>

#include <thread>

namespace ringmaster::algorithms {
namespace {

using transport::Arena;
using transport::ArenaMap;
using transport::ControlBlock;
using transport::LivenessMonitor;

constexpr uint64_t kEpoch = (uint64_t{1} << 40) + 3;

LivenessMonitor::Options TwoRanks(int rank) {
  LivenessMonitor::Options options;
  options.epoch = kEpoch;
  options.rank = rank;
  options.peers.resize(2);
  return options;
}

struct ShmPeersTest : ::testing::Test {
  ShmPeersTest() {
    for (int i = 0; i < 2; ++i) {
      std::shared_ptr<Arena> arena;
      const Status created = Arena::Create(transport::kDefaultArenaBytes, &arena);
      EXPECT_TRUE(created.ok()) << created.message();
      maps.push_back(arena);
    }
  }
  std::vector<std::shared_ptr<ArenaMap>> maps;
  LivenessMonitor first_life{TwoRanks(0)}, second_life{TwoRanks(1)};
};

TEST_F(ShmPeersTest, AWaitEndsWhenTheOtherRankHasRaisedItsFlagSoFar) {
  ShmPeers first(&first_life, kEpoch, maps, 0);
  ShmPeers second(&second_life, kEpoch, maps, 1);
  std::atomic<bool> raised{false};
  std::thread peer([&] {
    second.Raise(&ControlBlock::staged, 1);
    raised = true;
    second.Raise(&ControlBlock::staged, 2);
  });
  EXPECT_TRUE(first.WaitAll(&ControlBlock::staged, 2).ok());
  EXPECT_TRUE(raised);
  peer.join();
}

TEST_F(ShmPeersTest, AFlagOfAnotherViewCountsForNothing) {
  ShmPeers before(&second_life, kEpoch - 1, maps, 1);
  before.Raise(&ControlBlock::small, 7);
  ShmPeers first(&first_life, kEpoch, maps, 0);
  first_life.Abort("the view is over");
  EXPECT_EQ(first.Wait(1, &ControlBlock::small, 7).code(), RM_ERR_EPOCH_MOVED);
  EXPECT_TRUE(first.Wait(1, &ControlBlock::small, 0).ok()) << "nothing to wait for";
}

TEST_F(ShmPeersTest, ASlotIsFreeWhenAllHaveConsumedTheChunkThatLiesInIt) {
  ShmPeers first(&first_life, kEpoch, maps, 0);
  ShmPeers second(&second_life, kEpoch, maps, 1);
  EXPECT_TRUE(first.WaitForStageSlot(transport::kStageSlots - 1).ok()) << "nothing lies in it yet";
  second.Raise(&ControlBlock::consumed, 1);
  EXPECT_TRUE(first.WaitForStageSlot(transport::kStageSlots).ok());
  first_life.Abort("the view is over");
  EXPECT_FALSE(first.WaitForStageSlot(transport::kStageSlots + 1).ok());
}

}  // namespace
}  // namespace ringmaster::algorithms
