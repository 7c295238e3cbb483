#include "collectives/algorithms/shm_peers.h"

#include <gtest/gtest.h>

#include <thread>

namespace ringmaster::algorithms {
namespace {

using transport::Arena;
using transport::ArenaChannel;
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
      channels.emplace_back(arena, 0);
      others.emplace_back(arena, 1);
    }
  }
  std::vector<ArenaChannel> channels, others;  // the first and the second of both arenas
  LivenessMonitor first_life{TwoRanks(0)}, second_life{TwoRanks(1)};
};

TEST_F(ShmPeersTest, AWaitEndsWhenTheOtherRankHasRaisedItsFlagSoFar) {
  ShmPeers first(&first_life, kEpoch, channels, 0);
  ShmPeers second(&second_life, kEpoch, channels, 1);
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
  ShmPeers before(&second_life, kEpoch - 1, channels, 1);
  before.Raise(&ControlBlock::small, 7);
  ShmPeers first(&first_life, kEpoch, channels, 0);
  first_life.Abort("the view is over");
  EXPECT_EQ(first.Wait(1, &ControlBlock::small, 7).code(), RM_ERR_EPOCH_MOVED);
  EXPECT_TRUE(first.Wait(1, &ControlBlock::small, 0).ok()) << "nothing to wait for";
}

TEST_F(ShmPeersTest, AFlagOfAnotherChannelCountsForNothing) {
  ShmPeers of_others(&second_life, kEpoch, others, 1);
  of_others.Raise(&ControlBlock::small, 7);
  ShmPeers first(&first_life, kEpoch, channels, 0);
  first_life.Abort("the view is over");
  EXPECT_FALSE(first.Wait(1, &ControlBlock::small, 1).ok());
}

TEST_F(ShmPeersTest, ASlotIsFreeWhenAllHaveConsumedTheChunkThatLiesInIt) {
  ShmPeers first(&first_life, kEpoch, channels, 0);
  ShmPeers second(&second_life, kEpoch, channels, 1);
  EXPECT_TRUE(first.WaitForStageSlot(transport::kStageSlots - 1).ok()) << "nothing lies in it yet";
  second.Raise(&ControlBlock::consumed, 1);
  EXPECT_TRUE(first.WaitForStageSlot(transport::kStageSlots).ok());
  first_life.Abort("the view is over");
  EXPECT_FALSE(first.WaitForStageSlot(transport::kStageSlots + 1).ok());
}

}  // namespace
}  // namespace ringmaster::algorithms
