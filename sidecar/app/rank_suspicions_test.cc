#include "sidecar/app/rank_suspicions.h"

#include <gtest/gtest.h>

namespace ringmaster::app {
namespace {

using std::chrono::seconds;

TEST(RankSuspicionsTest, CountFromTheFirstWordOnAndOnce) {
  const SteadyTime start(seconds(10));
  RankSuspicions suspicions;
  suspicions.Add(5, 2, start);
  suspicions.Add(5, 2, start + seconds(2));
  EXPECT_FALSE(suspicions.TakeLasting(5, start + seconds(2)));
  EXPECT_FALSE(suspicions.TakeLasting(6, start + seconds(3))) << "of another view";
  EXPECT_EQ(suspicions.TakeLasting(5, start + seconds(3)), 2);
  EXPECT_FALSE(suspicions.TakeLasting(5, start + seconds(3)));
}

TEST(RankSuspicionsTest, AccuseThePodOfTheRankInThatViewOnly) {
  membership::View view;
  view.epoch = 5;
  view.ranks = {{.pod = 0}, {.pod = 1}};
  RankSuspicions suspicions;
  suspicions.Add(5, 1, SteadyTime());
  EXPECT_TRUE(suspicions.Accuse(view, 1));
  EXPECT_FALSE(suspicions.Accuse(view, 0));
  view.epoch = 6;
  EXPECT_FALSE(suspicions.Accuse(view, 1));
  view.epoch = 5;
  suspicions.Clear();
  EXPECT_FALSE(suspicions.Accuse(view, 1));
}

}  // namespace
}  // namespace ringmaster::app
