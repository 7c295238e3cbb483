#include "operator/runtime/list_watch_health.h"

#include <gtest/gtest.h>

#include <thread>

namespace ringmaster::runtime {
namespace {

constexpr std::chrono::milliseconds kNow{0};

TEST(ListWatchHealthTest, FailuresAreCountedAndTheLastOneIsKeptUntilItIsOver) {
  ListWatchHealth health("pods");
  health.Failed({.message = "away"});
  health.Failed({.message = "not for you"});
  EXPECT_EQ(health.state().error, "not for you");
  EXPECT_EQ(health.state().failures, 2u);
  health.Recovered();
  EXPECT_EQ(health.state().error, "");
  EXPECT_EQ(health.state().failures, 2u) << "they have happened";
}

TEST(ListWatchHealthTest, AWholeListMakesItSynced) {
  ListWatchHealth health("pods");
  health.Failed({.message = "away"});
  EXPECT_FALSE(health.WaitForSync(kNow));
  health.SetSynced();
  EXPECT_TRUE(health.WaitForSync(kNow));
  EXPECT_EQ(health.state().error, "");
}

TEST(ListWatchHealthTest, TheFirstListEndsAWait) {
  ListWatchHealth health("pods");
  std::jthread lists([&] { health.SetSynced(); });
  EXPECT_TRUE(health.WaitForSync(std::chrono::minutes(1)));
}

TEST(ListWatchHealthTest, EachTurnIsStamped) {
  ListWatchHealth health("pods");
  const auto before = std::chrono::steady_clock::now();
  health.SetTurn();
  EXPECT_GE(health.state().last_turn, before);
}

}  // namespace
}  // namespace ringmaster::runtime
