#include "collectives/engine/job_participation.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

WorkerView ViewFor(const std::string& reason, bool holds) {
  WorkerView view;
  view.reason = reason;
  view.holds = holds;
  return view;
}

TEST(JobParticipationTest, AJoinerHasNoStateBeforeItWasGivenSome) {
  EngineInfo info;
  JobParticipation participation(false, &info);
  participation.ListIn(ViewFor("ScaleUp", false));
  EXPECT_FALSE(participation.has_state());
  EXPECT_EQ(info.held_epoch, 0u);
  participation.GetState(7);
  EXPECT_TRUE(participation.has_state());
  EXPECT_EQ(info.held_epoch, 7u);
}

// The sidecar is told in which view this worker has the state, because all other workers of the
// view may die before an operation completes.
TEST(JobParticipationTest, InEachViewItIsKnownWhetherThisWorkerHasTheState) {
  EngineInfo info;
  JobParticipation participation(true, &info);
  WorkerView view = ViewFor("Bootstrap", true);
  for (const uint64_t epoch : {3, 4}) {
    view.epoch = epoch;
    participation.ListIn(view);
    EXPECT_EQ(info.held_epoch, epoch);
  }
  participation.Enter();
  participation.Drop();
  EXPECT_EQ(info.held_epoch, 0u);
  view = ViewFor("ScaleUp", false);
  view.epoch = 5;
  participation.ListIn(view);
  EXPECT_EQ(info.held_epoch, 0u) << "as a joiner it has yet to get it";
}

TEST(JobParticipationTest, AllHaveWhatAJobBeginsWithAlsoOneThatWasToJoinTheViewThatDied) {
  EngineInfo info;
  JobParticipation first(false, &info), counted(false, &info);
  first.ListIn(ViewFor("Bootstrap", false));
  EXPECT_TRUE(first.has_state());
  counted.ListIn(ViewFor("MemberFailed", true));
  EXPECT_TRUE(counted.has_state());
}

TEST(JobParticipationTest, WhoWasDroppedHasNoStateWhateverTheViewSays) {
  EngineInfo info;
  JobParticipation participation(true, &info);
  participation.Enter();
  EXPECT_TRUE(info.entered);
  EXPECT_TRUE(participation.Drop());
  EXPECT_FALSE(participation.entered());
  EXPECT_TRUE(info.dropped);
  participation.ListIn(ViewFor("Bootstrap", true));
  EXPECT_FALSE(participation.has_state());
}

TEST(JobParticipationTest, WhoHasNotBeenLetInStillWaitsAndIsNotDropped) {
  EngineInfo info;
  JobParticipation participation(true, &info);
  EXPECT_FALSE(participation.Drop());
  EXPECT_FALSE(info.dropped);
  EXPECT_FALSE(participation.has_state());
}

TEST(JobParticipationTest, WhoIsTakenBackIsDroppedNoMoreAndEntersWhenItsUserMayGoOn) {
  EngineInfo info;
  JobParticipation participation(true, &info);
  participation.Enter();
  participation.Drop();
  participation.TakeBack();
  EXPECT_FALSE(info.dropped);
  EXPECT_FALSE(info.entered);
  participation.Enter();
  EXPECT_TRUE(info.entered);
}

}  // namespace
}  // namespace ringmaster::engine
