#include "collectives/sidecar_client/frame_queue.h"

#include <gtest/gtest.h>

namespace ringmaster::sidecar_client {
namespace {

using Clock = std::chrono::steady_clock;

const Clock::time_point kNow{};  // a time that has passed

TEST(FrameQueueTest, FramesAreTakenOnceInTheirOrder) {
  FrameQueue queue;
  queue.Put("a");
  queue.Put("b");
  EXPECT_EQ(queue.Take(), "ab");
  EXPECT_EQ(queue.Take(), "");
}

TEST(FrameQueueTest, AWaitEndsWithTheAnswerToItsPingOrALaterOne) {
  FrameQueue queue;
  EXPECT_FALSE(queue.NeedsPing());
  queue.AskForAnswer();
  EXPECT_TRUE(queue.NeedsPing());
  queue.Answered(3);  // answers a ping that was sent before
  EXPECT_TRUE(queue.NeedsPing());
  queue.Pinged(5);
  EXPECT_FALSE(queue.NeedsPing());
  queue.Answered(4);
  EXPECT_FALSE(queue.AwaitAnswer(kNow));

  queue.AskForAnswer();
  queue.Pinged(6);
  queue.Answered(7);
  EXPECT_TRUE(queue.AwaitAnswer(kNow));
}

TEST(FrameQueueTest, AfterALostConnectionAnotherPingHasToBeAnswered) {
  FrameQueue queue;
  queue.AskForAnswer();
  queue.Pinged(1);
  queue.Disconnected("gone");
  EXPECT_EQ(queue.trouble(), "gone");
  queue.Answered(1);
  EXPECT_TRUE(queue.NeedsPing());
  queue.Pinged(2);
  queue.Answered(2);
  EXPECT_TRUE(queue.AwaitAnswer(kNow));
}

TEST(FrameQueueTest, AWaitThatWasGivenUpNeedsNoPing) {
  FrameQueue queue;
  queue.AskForAnswer();
  EXPECT_FALSE(queue.AwaitAnswer(kNow));
  EXPECT_FALSE(queue.NeedsPing());
}

}  // namespace
}  // namespace ringmaster::sidecar_client
