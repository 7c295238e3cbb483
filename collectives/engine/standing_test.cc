#include "collectives/engine/standing.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

View ViewFor(const std::string& reason, bool holds) {
  View view;
  view.reason = reason;
  view.holds = holds;
  return view;
}

TEST(StandingTest, AJoinerHasNoStateBeforeItWasGivenSome) {
  EngineInfo info;
  Standing standing(false, &info);
  standing.ListIn(ViewFor("ScaleUp", false));
  EXPECT_FALSE(standing.has_state());
  EXPECT_EQ(info.held_epoch, 0u);
  standing.GetState(7);
  EXPECT_TRUE(standing.has_state());
  EXPECT_EQ(info.held_epoch, 7u);
}

// The sidecar hears in which view, as that may lose all others before an operation completes.
TEST(StandingTest, InEachViewItIsKnownWhetherThisWorkerHasTheState) {
  EngineInfo info;
  Standing standing(true, &info);
  View view = ViewFor("Bootstrap", true);
  for (const uint64_t epoch : {3, 4}) {
    view.epoch = epoch;
    standing.ListIn(view);
    EXPECT_EQ(info.held_epoch, epoch);
  }
  standing.Enter();
  standing.Drop();
  EXPECT_EQ(info.held_epoch, 0u);
  view = ViewFor("ScaleUp", false);
  view.epoch = 5;
  standing.ListIn(view);
  EXPECT_EQ(info.held_epoch, 0u) << "as a joiner it has yet to get it";
}

TEST(StandingTest, AllHaveWhatAJobBeginsWithAlsoOneThatWasToJoinTheViewThatDied) {
  EngineInfo info;
  Standing first(false, &info), counted(false, &info);
  first.ListIn(ViewFor("Bootstrap", false));
  EXPECT_TRUE(first.has_state());
  counted.ListIn(ViewFor("MemberFailed", true));
  EXPECT_TRUE(counted.has_state());
}

TEST(StandingTest, WhoWasDroppedHasNoStateWhateverTheViewSays) {
  EngineInfo info;
  Standing standing(true, &info);
  standing.Enter();
  EXPECT_TRUE(info.entered);
  EXPECT_TRUE(standing.Drop());
  EXPECT_FALSE(standing.entered());
  EXPECT_TRUE(info.dropped);
  standing.ListIn(ViewFor("Bootstrap", true));
  EXPECT_FALSE(standing.has_state());
}

TEST(StandingTest, WhoHasNotBeenLetInStillWaitsAndIsNotDropped) {
  EngineInfo info;
  Standing standing(true, &info);
  EXPECT_FALSE(standing.Drop());
  EXPECT_FALSE(info.dropped);
  EXPECT_FALSE(standing.has_state());
}

TEST(StandingTest, WhoIsTakenBackIsDroppedNoMoreAndEntersWhenItsUserMayGoOn) {
  EngineInfo info;
  Standing standing(true, &info);
  standing.Enter();
  standing.Drop();
  standing.TakeBack();
  EXPECT_FALSE(info.dropped);
  EXPECT_FALSE(info.entered);
  standing.Enter();
  EXPECT_TRUE(info.entered);
}

}  // namespace
}  // namespace ringmaster::engine
