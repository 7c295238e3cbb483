#include "collectives/sidecar_client/outbox.h"

#include <gtest/gtest.h>

namespace ringmaster::sidecar_client {
namespace {

using Clock = std::chrono::steady_clock;

const Clock::time_point kNow{};  // has passed

TEST(OutboxTest, FramesAreTakenOnceInTheirOrder) {
  Outbox outbox;
  outbox.Put("a");
  outbox.Put("b");
  EXPECT_EQ(outbox.Take(), "ab");
  EXPECT_EQ(outbox.Take(), "");
}

TEST(OutboxTest, AWaitEndsWithTheAnswerToItsPingOrALaterOne) {
  Outbox outbox;
  EXPECT_FALSE(outbox.NeedsPing());
  outbox.AskForAnswer();
  EXPECT_TRUE(outbox.NeedsPing());
  outbox.Answered(3);  // of a ping that was sent before
  EXPECT_TRUE(outbox.NeedsPing());
  outbox.Pinged(5);
  EXPECT_FALSE(outbox.NeedsPing());
  outbox.Answered(4);
  EXPECT_FALSE(outbox.AwaitAnswer(kNow));

  outbox.AskForAnswer();
  outbox.Pinged(6);
  outbox.Answered(7);
  EXPECT_TRUE(outbox.AwaitAnswer(kNow));
}

TEST(OutboxTest, AfterALostConnectionAnotherPingHasToBeAnswered) {
  Outbox outbox;
  outbox.AskForAnswer();
  outbox.Pinged(1);
  outbox.Disconnected("gone");
  EXPECT_EQ(outbox.trouble(), "gone");
  outbox.Answered(1);
  EXPECT_TRUE(outbox.NeedsPing());
  outbox.Pinged(2);
  outbox.Answered(2);
  EXPECT_TRUE(outbox.AwaitAnswer(kNow));
}

TEST(OutboxTest, AWaitThatWasGivenUpNeedsNoPing) {
  Outbox outbox;
  outbox.AskForAnswer();
  EXPECT_FALSE(outbox.AwaitAnswer(kNow));
  EXPECT_FALSE(outbox.NeedsPing());
}

}  // namespace
}  // namespace ringmaster::sidecar_client
