#include "operator/runtime/work_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace ringmaster::runtime {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The next due key; "(none)" if there is none for much longer than any wait here.
std::string Take(WorkQueue& queue) {
  std::stop_source stop;
  const std::jthread patience([&stop](std::stop_token taken) {
    std::mutex mu;
    std::condition_variable_any wake;
    std::unique_lock lock(mu);
    if (!wake.wait_for(lock, taken, seconds(20), [&] { return taken.stop_requested(); })) {
      stop.request_stop();
    }
  });
  return queue.Take(stop.get_token()).value_or("(none)");
}

TEST(WorkQueueTest, AKeyThatWaitsAlreadyIsNotAddedAgain) {
  WorkQueue queue;
  for (int i = 0; i < 3; ++i) queue.Add("a");
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(Take(queue), "a");
  queue.Done("a");
  EXPECT_EQ(queue.size(), 0u);
}

TEST(WorkQueueTest, AKeyIsWithOneWorkerAtATimeAndComesBackIfItWasAddedMeanwhile) {
  WorkQueue queue;
  queue.Add("a");
  EXPECT_EQ(Take(queue), "a");
  queue.Add("a");
  queue.Add("a");
  queue.Add("b");
  EXPECT_EQ(Take(queue), "b") << "a is busy, though it was added first";
  queue.Done("b");
  queue.Done("a");
  EXPECT_EQ(Take(queue), "a");
  queue.Done("a");
  EXPECT_EQ(queue.size(), 0u);
}

TEST(WorkQueueTest, TheEarliestMomentCounts) {
  WorkQueue queue;
  queue.AddAfter("a", hours(1));
  queue.Add("a");
  queue.AddAfter("a", hours(2));
  EXPECT_EQ(Take(queue), "a");
  queue.AddAfter("a", hours(1));
  queue.Done("a");
  queue.Add("b");
  EXPECT_EQ(Take(queue), "b") << "a asked for later";
  EXPECT_EQ(queue.size(), 2u);
}

TEST(WorkQueueTest, ALaterMomentOfAKeyIsForgottenWithIt) {
  WorkQueue queue;
  queue.AddAfter("a", hours(1));
  queue.Add("a");
  EXPECT_EQ(Take(queue), "a");
  queue.Done("a");
  EXPECT_FALSE(queue.NextDue());
}

TEST(WorkQueueTest, AKeyThatComesDueEarlierWakesTheWorkerThatWaits) {
  WorkQueue queue;
  queue.AddAfter("later", hours(1));
  std::string taken;
  std::jthread worker([&] { taken = Take(queue); });
  queue.Add("now");
  worker.join();
  EXPECT_EQ(taken, "now");
}

TEST(WorkQueueTest, FailuresWaitTwiceAsLongEachTimeUpToTheLimit) {
  const WorkQueueOptions options{.first_backoff = milliseconds(50),
                                 .max_backoff = milliseconds(1000)};
  const std::array expected = {50, 100, 200, 400, 800, 1000, 1000};
  for (int i = 0; i < static_cast<int>(expected.size()); ++i) {
    EXPECT_EQ(WorkQueue::Backoff(options, i), milliseconds(expected[static_cast<std::size_t>(i)]))
        << i;
  }
  EXPECT_EQ(WorkQueue::Backoff(options, 1'000'000), milliseconds(1000)) << "no overflow";
}

TEST(WorkQueueTest, AKeyThatDidWellStartsFromTheFirstBackoff) {
  WorkQueue queue({.first_backoff = milliseconds(1), .max_backoff = hours(1)});
  for (int i = 0; i < 30; ++i) queue.AddBackoff("a");  // the earliest due time counts
  EXPECT_EQ(Take(queue), "a");
  queue.Forget("a");
  queue.AddBackoff("a");
  queue.Done("a");
  EXPECT_EQ(Take(queue), "a") << "it waits for an hour, as after its 31st failure";
}

TEST(WorkQueueTest, ItsFiguresTellWhatWaitsAndWhatTakesLong) {
  WorkQueue queue({.first_backoff = milliseconds(1)});
  queue.Add("a");
  queue.AddAfter("b", hours(1));
  EXPECT_EQ(queue.stats().longest_running.count(), 0);
  EXPECT_EQ(Take(queue), "a");
  queue.AddBackoff("a");
  const WorkQueue::Stats stats = queue.stats();
  EXPECT_EQ(stats.depth, 3u) << "b waits, a is at work and comes again";
  EXPECT_EQ(stats.adds, 3u);
  EXPECT_EQ(stats.retries, 1u);
  EXPECT_EQ(stats.longest_key, "a");
  EXPECT_GT(stats.longest_running.count(), 0);
  queue.Done("a");
  EXPECT_EQ(queue.stats().longest_key, "");
}

TEST(WorkQueueTest, StopEndsTheWaitForAKey) {
  WorkQueue queue;
  queue.AddAfter("a", hours(1));
  std::optional<std::string> taken = "unset";
  std::jthread worker([&](std::stop_token stop) { taken = queue.Take(stop); });
  worker.request_stop();
  worker.join();
  EXPECT_EQ(taken, std::nullopt);
}

TEST(WorkQueueTest, NoTwoWorkersEverHaveTheSameKey) {
  constexpr int kKeys = 5, kAdds = 2000;
  WorkQueue queue;
  std::array<std::atomic<int>, kKeys> holders{};
  std::atomic<int> shared{0};
  std::vector<std::jthread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&](std::stop_token stop) {
      while (const auto key = queue.Take(stop)) {
        std::atomic<int>& held = holders[static_cast<std::size_t>(std::stoi(*key))];
        if (held.fetch_add(1) != 0) ++shared;
        std::this_thread::yield();
        held.fetch_sub(1);
        queue.Done(*key);
      }
    });
  }
  for (int i = 0; i < kAdds; ++i) queue.Add(std::to_string(i % kKeys));
  workers.clear();
  EXPECT_EQ(shared, 0);
}

TEST(WorkQueueTest, EachFailureInARowIsWaitedForLonger) {
  WorkQueue queue({.first_backoff = milliseconds(20), .max_backoff = hours(1)});
  const auto began = std::chrono::steady_clock::now();
  queue.Add("a");
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(Take(queue), "a");
    queue.AddBackoff("a");
    queue.Done("a");
  }
  ASSERT_EQ(Take(queue), "a");
  EXPECT_GE(std::chrono::steady_clock::now() - began, milliseconds(20 + 40 + 80 + 160));
}

TEST(WorkQueueTest, WhatCantWaitComesBeforeAllThatWaits) {
  WorkQueue queue;
  queue.Add("a");
  queue.Add("b");
  queue.AddFirst("c");
  queue.AddFirst("b");
  EXPECT_EQ(queue.Take({}), "c");
  EXPECT_EQ(queue.Take({}), "b");
  EXPECT_EQ(queue.Take({}), "a");
}

TEST(WorkQueueTest, WhoWorksHearsThatHisKeyOrOneThatWaitsWasAddedFirst) {
  WorkQueue queue;
  queue.Add("a");
  queue.Add("b");
  ASSERT_EQ(queue.Take({}), "a");
  ASSERT_EQ(queue.Take({}), "b");
  queue.Add("a");
  queue.Add("c");
  EXPECT_FALSE(queue.IsHurried("a")) << "nobody counts the seconds";
  queue.AddFirst("a");
  EXPECT_TRUE(queue.IsHurried("a"));
  EXPECT_FALSE(queue.IsHurried("b")) << "that is for who has a";
  queue.Done("a");
  EXPECT_TRUE(queue.IsHurried("b")) << "a waits for a worker";
  ASSERT_EQ(queue.Take({}), "a");
  EXPECT_FALSE(queue.IsHurried("a"));
  EXPECT_FALSE(queue.IsHurried("b"));
}

}  // namespace
}  // namespace ringmaster::runtime
