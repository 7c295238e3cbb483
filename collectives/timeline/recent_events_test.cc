#include "collectives/timeline/recent_events.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace ringmaster::timeline {
namespace {

using std::chrono::seconds;

const Clock::time_point kStart{seconds(1000)};

Event At(int second, const std::string& name = "") {
  return {Row::kTensor,
          "ALLREDUCE",
          name,
          kStart + seconds(second),
          kStart + seconds(second),
          {{{"bytes", second}, {"process_set", -1}}}};
}

TEST(RecentEventsTest, WhatWasPushedComesBackWholeTheNewestFirst) {
  RecentEvents recent(8);
  recent.Push(At(1, "grad"));
  recent.Push({Row::kSteps, "step", "", kStart, kStart + seconds(2), {}});
  const auto events = recent.Since(kStart);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_STREQ(events[0].what, "step");
  EXPECT_EQ(events[0].row, Row::kSteps);
  EXPECT_EQ(events[0].name, "");
  EXPECT_EQ(events[0].end - events[0].begin, seconds(2));
  EXPECT_EQ(events[0].numbers[0].key, nullptr);
  EXPECT_EQ(events[1].name, "grad");
  EXPECT_EQ(events[1].row, Row::kTensor);
  EXPECT_STREQ(events[1].numbers[1].key, "process_set");
  EXPECT_EQ(events[1].numbers[1].value, -1);
}

TEST(RecentEventsTest, TheOldestGoAndSoDoThoseThatEndedBefore) {
  RecentEvents recent(4);
  for (int i = 0; i < 10; ++i) recent.Push(At(i));
  const auto seconds_of = [&](int since) {
    std::string text;
    for (const Event& event : recent.Since(kStart + seconds(since)))
      text += std::to_string(event.numbers[0].value);
    return text;
  };
  EXPECT_EQ(seconds_of(0), "9876");
  EXPECT_EQ(seconds_of(8), "98");
  EXPECT_EQ(seconds_of(20), "");
}

TEST(RecentEventsTest, OfALongNameTheEndIsKept) {
  RecentEvents recent(2);
  const std::string end(RecentEvents::kLongestName, 'e');
  recent.Push(At(1, "beginning." + end));
  recent.Push(At(2, "short"));  // must leave nothing of the longer name before
  EXPECT_EQ(recent.Since(kStart)[1].name, end);
  recent.Push(At(3, "s"));
  EXPECT_EQ(recent.Since(kStart)[0].name, "s");
}

// An event that is overwritten while it is read is left out; none is a mixture of two.
TEST(RecentEventsTest, ReadersSeeWholeEventsWhileItIsWritten) {
  RecentEvents recent(2);
  std::jthread writer([&](std::stop_token stop) {
    for (int i = 1; !stop.stop_requested(); ++i) {
      Event event =
          At(i, std::string(static_cast<size_t>(i % 60 + 1), static_cast<char>('a' + i % 26)));
      event.numbers[1].value = i;
      recent.Push(event);
    }
  });
  size_t seen = 0;
  while (seen < 20'000) {
    for (const Event& event : recent.Since(kStart)) {
      ++seen;
      const int64_t i = event.numbers[0].value;
      ASSERT_EQ(event.numbers[1].value, i);
      ASSERT_EQ(event.begin, kStart + seconds(i));
      ASSERT_EQ(event.name,
                std::string(static_cast<size_t>(i % 60 + 1), static_cast<char>('a' + i % 26)));
    }
  }
}

}  // namespace
}  // namespace ringmaster::timeline
