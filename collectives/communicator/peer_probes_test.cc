#include "collectives/communicator/peer_probes.h"

#include <gtest/gtest.h>

#include <set>

namespace ringmaster::communicator {
namespace {

using transport::Clock;

const Clock::time_point kNow(std::chrono::seconds(100));

class PeerProbesTest : public testing::Test {
 protected:
  PeerProbesTest() { options_.peers.resize(4); }

  CommunicatorOptions options_;
  PeerProbes probes_{options_, {}, kNow, kNow + std::chrono::seconds(10)};
};

TEST_F(PeerProbesTest, TheFirstProbeAndEachNextOneWaits) {
  EXPECT_FALSE(probes_.TakeDue(kNow));
  const Clock::time_point first = kNow + PeerProbes::kEvery;
  EXPECT_TRUE(probes_.TakeDue(first));
  EXPECT_FALSE(probes_.TakeDue(first));
  EXPECT_TRUE(probes_.TakeDue(first + PeerProbes::kEvery));
}

TEST_F(PeerProbesTest, AwaitedRanksTakeTurns) {
  const std::set<int> awaited = {1, 3};
  const auto is_awaited = [&](int rank) { return awaited.count(rank) > 0; };
  for (const int rank : {1, 3, 1, 3}) EXPECT_EQ(probes_.NextOf(is_awaited), rank);
}

TEST_F(PeerProbesTest, NobodyIsProbedWhereNobodyIsAwaited) {
  EXPECT_EQ(probes_.NextOf([](int) { return false; }), std::nullopt);
  EXPECT_EQ(probes_.NextOf([](int rank) { return rank == 2; }), 2) << "and no turn is lost";
}

}  // namespace
}  // namespace ringmaster::communicator
