#include "collectives/elastic/timeline_request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::elastic {
namespace {

using nlohmann::json;

TEST(TimelineRequestTest, WhatIsAskedForIsRead) {
  const auto request = ReadTimelineRequest({{"t", "timeline"},
                                            {"request", 7},
                                            {"process", 3},
                                            {"seconds", 5},
                                            {"tensors", false},
                                            {"bytes", 1000}});
  EXPECT_EQ(request.number, 7u);
  EXPECT_EQ(request.recent.process, 3);
  EXPECT_EQ(request.recent.span, std::chrono::seconds(5));
  EXPECT_FALSE(request.recent.tensors);
  EXPECT_EQ(request.recent.most_bytes, 1000u);
}

TEST(TimelineRequestTest, TooMuchIsNotGiven) {
  const auto much =
      ReadTimelineRequest({{"seconds", 1'000'000'000'000}, {"bytes", 1 << 30}}).recent;
  EXPECT_EQ(much.span, std::chrono::seconds(60));
  EXPECT_EQ(much.most_bytes, 4u << 20);
  const auto negative = ReadTimelineRequest({{"seconds", -1}, {"bytes", -1}}).recent;
  EXPECT_EQ(negative.span.count(), 0);
  EXPECT_EQ(negative.most_bytes, 0u);
}

}  // namespace
}  // namespace ringmaster::elastic
