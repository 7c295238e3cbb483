#include "collectives/sidecar_client/heartbeat.h"

#include <gtest/gtest.h>

namespace ringmaster::sidecar_client {
namespace {

TEST(HeartbeatTest, NobodyIsFencedBeforeTheFirstWelcome) {
  Heartbeat heartbeat(250, 1000);
  EXPECT_FALSE(heartbeat.Fence(1'000'000));
  heartbeat.Restart(5000, 250, 1000);
  EXPECT_EQ(heartbeat.fence_at(), 6000);
}

TEST(HeartbeatTest, TheTimeCountsFromTheSendingOfTheLastAnsweredPing) {
  Heartbeat heartbeat(250, 1000);
  heartbeat.Restart(5000, 100, 1000);
  EXPECT_EQ(heartbeat.ping_at(), 5000);
  const uint64_t first = heartbeat.Ping(5000);
  EXPECT_EQ(heartbeat.ping_at(), 5100);
  const uint64_t second = heartbeat.Ping(5100);
  heartbeat.Ping(5200);
  EXPECT_LT(first, second);
  heartbeat.Answered(second);  // this answers the first one, too
  EXPECT_EQ(heartbeat.fence_at(), 6100);
  heartbeat.Answered(first);  // comes late and changes nothing
  EXPECT_EQ(heartbeat.fence_at(), 6100);
}

TEST(HeartbeatTest, FencesAgainWhenTheNextSidecarFallsSilentToo) {
  Heartbeat heartbeat(250, 1000);
  heartbeat.Restart(5000, 250, 1000);
  EXPECT_TRUE(heartbeat.Fence(6000));
  heartbeat.Restart(9000, 250, 1000);
  EXPECT_FALSE(heartbeat.Fence(9999)) << "the next one is given its time";
  EXPECT_TRUE(heartbeat.Fence(10000));
  EXPECT_FALSE(heartbeat.Fence(11000));
}

TEST(HeartbeatTest, FencesAgainWhenTheSidecarWasHeardInBetween) {
  Heartbeat heartbeat(100, 5000);
  heartbeat.Restart(1000, 100, 5000);
  const uint64_t old = heartbeat.Ping(1000);
  EXPECT_FALSE(heartbeat.HeardAgain(2000)) << "nobody was fenced";
  ASSERT_TRUE(heartbeat.Fence(6000));
  heartbeat.Answered(old);
  EXPECT_FALSE(heartbeat.HeardAgain(6000)) << "what it answers is old";
  const uint64_t recent = heartbeat.Ping(6100);
  heartbeat.Answered(recent);
  EXPECT_TRUE(heartbeat.HeardAgain(6200));
  EXPECT_FALSE(heartbeat.HeardAgain(6300)) << "that is said once";
  EXPECT_FALSE(heartbeat.Fence(11099));
  EXPECT_TRUE(heartbeat.Fence(11100));
}

TEST(HeartbeatTest, FencesOnceWhenTheTimeHasCome) {
  Heartbeat heartbeat(250, 1000);
  heartbeat.Restart(5000, 250, 1000);
  EXPECT_FALSE(heartbeat.Fence(5999));
  EXPECT_TRUE(heartbeat.Fence(6000));
  EXPECT_FALSE(heartbeat.Fence(7000));
}

TEST(HeartbeatTest, ANewConnectionForgetsPingsButNotWhenTheLastWasAnswered) {
  Heartbeat heartbeat(250, 1000);
  heartbeat.Restart(5000, 250, 1000);
  const uint64_t lost = heartbeat.Ping(5300);
  heartbeat.Restart(5500, 250, 2000);
  heartbeat.Answered(lost);
  EXPECT_EQ(heartbeat.fence_at(), 7000);
}

}  // namespace
}  // namespace ringmaster::sidecar_client
