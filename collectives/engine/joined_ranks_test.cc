#include "collectives/engine/joined_ranks.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

std::map<int, Request> JoinsAt(const std::map<int, uint64_t>& numbers) {
  std::map<int, Request> joins;
  for (const auto& [rank, number] : numbers) {
    joins[rank].kind = Kind::kJoin;
    joins[rank].count = number;
  }
  return joins;
}

TEST(JoinedRanksTest, ASetHasJoinedWhenAllOfItHave) {
  JoinedRanks joined;
  joined.Hear(2);
  joined.Hear(0);
  EXPECT_TRUE(joined.Has(0));
  EXPECT_FALSE(joined.Has(1));
  EXPECT_TRUE(joined.HasAll({0, 2}));
  EXPECT_FALSE(joined.HasAll({0, 1}));
}

TEST(JoinedRanksTest, TheLastIsWhoAskedAtTheLatestOperationAlsoIfItWasHeardFirst) {
  JoinedRanks joined;
  for (int rank : {1, 0, 2}) joined.Hear(rank);
  EXPECT_EQ(joined.Last(JoinsAt({{0, 4}, {1, 9}, {2, 5}})), 1);
  EXPECT_EQ(joined.Last(JoinsAt({{0, 4}, {1, 4}, {2, 4}})), 2) << "of equals who was heard last";
}

TEST(JoinedRanksTest, WhenThisRankAskedIsKeptOverViewsAndForgottenWithTheEnd) {
  JoinedRanks joined;
  EXPECT_EQ(joined.OwnNumber(3), 3u);
  joined.Hear(0);
  joined.Reset();
  EXPECT_TRUE(joined.empty());
  EXPECT_EQ(joined.OwnNumber(8), 3u);
  joined.End();
  EXPECT_EQ(joined.OwnNumber(8), 8u);
  joined.ForgetOwn();
  EXPECT_EQ(joined.OwnNumber(9), 9u);
}

}  // namespace
}  // namespace ringmaster::engine
