#include "collectives/engine/stall_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr StallWatch::Clock::time_point kNow{seconds(1000)};

Unanswered Waits(const std::string& tensor, std::vector<int> asked, std::vector<int> missing,
                 seconds since) {
  return {.tensor = tensor, .asked = asked, .missing = missing, .since = kNow - since};
}

TEST(StallWatchTest, TensorsThatWaitForTheSameRanksAreOneStallOfTheOldest) {
  StallWatch watch({seconds(60)});
  EXPECT_TRUE(
      watch.Update({Waits("a", {0, 2}, {1}, seconds(61)), Waits("b", {0, 2}, {1}, seconds(62)),
                    Waits("c", {0}, {1, 2}, seconds(63))},
                   0, kNow));
  EXPECT_EQ(
      watch.stalls(),
      (std::vector<job::Stall>{
          {.tensor = "b",
           .tensors = 2,
           .asked = 2,
           .waiting = {0, 2},
           .missing = {1},
           .waited_ms = 62'000},
          {.tensor = "c", .asked = 1, .waiting = {0}, .missing = {1, 2}, .waited_ms = 63'000}}));
}

TEST(StallWatchTest, IsToldByTheLowestRankThatWaits) {
  StallWatch watch({seconds(60)});
  EXPECT_FALSE(watch.Update({Waits("a", {1, 2}, {0}, seconds(61))}, 2, kNow));
  EXPECT_TRUE(watch.stalls().empty());
  EXPECT_TRUE(watch.Update({Waits("a", {1, 2}, {0}, seconds(61))}, 1, kNow));
}

// Rank 0 begins to wait when rank 1 has waited for long. Rank 1 goes on reporting, because rank 0
// can't know how long rank 1 has waited.
TEST(StallWatchTest, WhoHasToldItGoesOnWhenALowerRankComesToWait) {
  StallWatch watch({seconds(60)});
  EXPECT_TRUE(watch.Update({Waits("a", {1}, {0, 2}, seconds(61))}, 1, kNow));
  EXPECT_TRUE(watch.Update({Waits("a", {0, 1}, {2}, seconds(61))}, 1, kNow));
  ASSERT_EQ(watch.stalls().size(), 1u);
  EXPECT_EQ(watch.stalls()[0].missing, std::vector<int>{2});
  EXPECT_TRUE(watch.Update({}, 1, kNow));
  EXPECT_FALSE(watch.Update({Waits("a", {0, 1}, {2}, seconds(61))}, 1, kNow)) << "another one";
}

TEST(StallWatchTest, ThatItLastsIsNoNewsAndThatItEndsIs) {
  StallWatch watch({seconds(60)});
  EXPECT_FALSE(watch.Update({}, 0, kNow));
  EXPECT_TRUE(watch.Update({Waits("a", {0}, {1, 2}, seconds(61))}, 0, kNow));
  EXPECT_FALSE(watch.Update({Waits("a", {0}, {1, 2}, seconds(61))}, 0, kNow + seconds(5)));
  EXPECT_TRUE(watch.Update({Waits("a", {0, 2}, {1}, seconds(61))}, 0, kNow)) << "one has come";
  EXPECT_TRUE(watch.Update({}, 0, kNow));
  EXPECT_FALSE(watch.Clear());
}

TEST(StallWatchTest, WhoeverWaitsForTooLongGivesUpAndSaysForWhom) {
  StallWatch watch({seconds(60), seconds(120)});
  watch.Update({Waits("a", {0, 1}, {2}, seconds(119))}, 1, kNow);
  EXPECT_EQ(watch.give_up(), "");
  watch.Update({Waits("a", {0, 1}, {2}, seconds(120))}, 1, kNow);
  EXPECT_THAT(watch.give_up(), HasSubstr("'a': asked for by ranks 0, 1, not by rank 2"));
}

TEST(StallWatchTest, OffNothingWaitsForLong) {
  EXPECT_EQ(StallWatch({}).LongAgo(kNow), StallWatch::Clock::time_point::min());
  EXPECT_EQ(StallWatch({seconds(60)}).LongAgo(kNow), kNow - seconds(60));
}

}  // namespace
}  // namespace ringmaster::engine
