#include "common/membership/rank_status.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

TEST(RankStatusTest, ADeadWorkerOfThisPodIsNewsOnce) {
  Floor f(2);
  f.workers.Update({});
  const auto first = f.ranks.UpdateOwn(0, f.workers);
  EXPECT_TRUE(first.news);
  EXPECT_FALSE(first.any_alive);
  EXPECT_FALSE(f.ranks.UpdateOwn(0, f.workers).news);
  EXPECT_EQ(f.ranks.LostOf(0).size(), 1u);
  EXPECT_TRUE(f.ranks.LostOf(1).empty());
}

TEST(RankStatusTest, ARestartedWorkerIsNotTheOneThatTheViewLists) {
  Floor f(2);
  f.workers.Update({{0, 2, "", "", true}});
  EXPECT_FALSE(f.ranks.UpdateOwn(0, f.workers).any_alive);
}

TEST(RankStatusTest, WorkersThatTheViewDoesNotListAreNotLost) {
  Floor f(2);
  f.ranks.LoseWorkers("p1", {{7, 1, "", "", false}});
  EXPECT_FALSE(f.ranks.AnyLost());
  f.ranks.LoseWorkers("p1", {{0, 1, "", "", false}});
  EXPECT_EQ(f.ranks.lost(), (std::vector<bool>{false, true}));
}

TEST(RankStatusTest, TheStateIsLostWithTheLastWorkerThatHoldsIt) {
  View view = *TestView(3);
  view.ranks[2].joined = true;
  RankStatus ranks;
  ranks.EnterView(std::make_shared<const View>(view));
  const Resignation resignation;
  ranks.LoseWorkers("p0", {{0, 1, "", "", false}});
  EXPECT_FALSE(ranks.StateLost({nullptr, nullptr, nullptr}));
  EXPECT_TRUE(ranks.StateLost({nullptr, &resignation, nullptr})) << "a joiner holds nothing yet";
  ranks.SetRan();
  EXPECT_FALSE(ranks.StateLost({nullptr, &resignation, nullptr}));
}

}  // namespace
}  // namespace ringmaster::membership
