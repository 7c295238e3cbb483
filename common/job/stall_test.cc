#include "common/job/stall.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace ringmaster::job {
namespace {

using nlohmann::json;

Stall OfTwo() {
  return {.tensor = "grad",
          .tensors = 4,
          .process_set = 2,
          .asked = 3,
          .waiting = {0, 2, 3},
          .missing = {1, 5},
          .in_shutdown = {5},
          .pods = {"w-1", "w-2/1"},
          .waited_ms = 61'000};
}

TEST(Stall, ArrivesAsItWasWritten) {
  EXPECT_EQ(StallsFromJson(ToJson({OfTwo()})), std::vector<Stall>{OfTwo()});
}

TEST(Stall, IsSaidInASentence) {
  EXPECT_EQ(Describe(OfTwo()),
            "'grad' and 3 more of process set 2: asked for by ranks 0, 2, 3, not by rank 1 (w-1), "
            "5 (w-2/1, in shutdown())");
  EXPECT_EQ(Describe({.tensor = "x", .asked = 1, .missing = {0}}),
            "'x': asked for by 1 rank, not by rank 0")
      << "a sender of an earlier version does not name the ranks";
  EXPECT_EQ(Describe({.tensor = "x", .asked = 1, .waiting = {7}, .missing = {0}}),
            "'x': asked for by rank 7, not by rank 0");
  EXPECT_EQ(
      Describe({.tensor = "x", .asked = 1, .waiting = {1}, .missing = {0}, .in_shutdown = {0}}),
      "'x': asked for by rank 1, not by rank 0 (in shutdown())");
}

TEST(Stall, OfManyRanksThatWaitTheFirstAreNamed) {
  Stall stall{.tensor = "x", .asked = 100, .missing = {100}};
  for (int rank = 0; rank < 100; ++rank) stall.waiting.push_back(rank);
  EXPECT_EQ(Describe(stall), "'x': asked for by 100 ranks (0, 1, 2, 3, ...), not by rank 100");
  const std::vector<Stall> read = StallsFromJson(ToJson({stall}));
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].waiting.size(), 64u);
  EXPECT_EQ(Describe(read[0]), Describe(stall));
}

TEST(Stall, WhatAnybodyMayHaveWrittenIsReadAndBounded) {
  for (const char* text : {"null", "7", "{}", "[]", "[1, null, {}]", R"([{"missing": 3}])",
                           R"([{"missing": ["a", null]}])"}) {
    EXPECT_TRUE(StallsFromJson(json::parse(text)).empty()) << text;
  }
  json many = json::array();
  for (int i = 0; i < 1000; ++i) {
    many.push_back({{"tensor", std::string(10'000, 'x')},
                    {"tensors", "?"},
                    {"waiting", std::vector<int>(1000, i)},
                    {"missing", std::vector<int>(1000, i)},
                    {"pods", std::vector<std::string>(1000, std::string(i == 0 ? 10'000 : 1, 'p'))},
                    {"waitedMs", i % 2 == 0 ? std::numeric_limits<std::int64_t>::max() : -1}});
  }
  const std::vector<Stall> stalls = StallsFromJson(many);
  ASSERT_EQ(stalls.size(), kMostStalls);
  EXPECT_EQ(stalls[0].tensor.size(), 200u);
  EXPECT_EQ(stalls[0].tensors, 1);
  EXPECT_EQ(stalls[0].waiting.size(), 64u);
  EXPECT_EQ(stalls[0].missing.size(), 64u);
  EXPECT_EQ(stalls[0].pods.size(), 64u);
  EXPECT_EQ(stalls[0].pods[63].size(), 200u);
  EXPECT_EQ(stalls[0].waited_ms, 365LL * 24 * 3600 * 1000);
  EXPECT_EQ(stalls[1].waited_ms, 0);
}

TEST(Stall, ALongNameIsCutBetweenCharacters) {
  std::string name = "x";
  while (name.size() < 300) name += "\u00e9";
  const std::vector<Stall> stalls = StallsFromJson(ToJson({{.tensor = name, .missing = {0}}}));
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0].tensor.size(), 199u);
  EXPECT_NO_THROW(ToJson(stalls).dump());
}

}  // namespace
}  // namespace ringmaster::job
