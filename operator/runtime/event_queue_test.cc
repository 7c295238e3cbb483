#include "operator/runtime/event_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <latch>
#include <memory>

namespace ringmaster::runtime {
namespace {

constexpr std::chrono::seconds kPatience{20};

TEST(EventQueueTest, WritesAllInOrder) {
  std::string written;
  EventQueue queue(10, nullptr);
  for (const char c : {'a', 'b', 'c'}) queue.Add([&written, c] { written += c; });
  ASSERT_TRUE(queue.Flush(kPatience));
  EXPECT_EQ(written, "abc");
}

TEST(EventQueueTest, WhatFindsNoRoomIsDroppedAndNobodyWaits) {
  std::latch began(1), go_on(1);
  std::atomic<int> written = 0, dropped = 0;
  EventQueue queue(2, [&] { ++dropped; });
  queue.Add([&] {
    began.count_down();
    go_on.wait();
  });
  began.wait();
  for (int i = 0; i < 5; ++i) queue.Add([&] { ++written; });
  EXPECT_EQ(dropped, 3);
  EXPECT_FALSE(queue.Flush(std::chrono::milliseconds(1)));
  go_on.count_down();
  ASSERT_TRUE(queue.Flush(kPatience));
  EXPECT_EQ(written, 2);
}

TEST(EventQueueTest, ItsEndWaitsForOneWriteAtMost) {
  std::atomic<bool> more = true;
  auto queue = std::make_unique<EventQueue>(1000, nullptr);
  const std::function<void()> again = [&more, &again, queue = queue.get()] {
    if (more) queue->Add(again);
  };
  queue->Add(again);
  auto end = std::async(std::launch::async, [&queue] { queue.reset(); });
  EXPECT_EQ(end.wait_for(kPatience), std::future_status::ready)
      << "it writes for as long as events come";
  more = false;
}

}  // namespace
}  // namespace ringmaster::runtime
