#include "common/membership/local_workers.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

TEST(LocalWorkersTest, ThatTheViewIsOverIsStoredBeforeTheWorkersAreTold) {
  Floor f(2);
  f.workers.StopView();
  f.workers.StopView();
  EXPECT_EQ(f.Take(), (Strings{"persist", "stop 1.1"}));
  f.workers.SetStopped(MakeEpoch(1, 0));
  EXPECT_FALSE(f.workers.stopped()) << "of an older view";
  f.workers.SetStopped(MakeEpoch(1, 1));
  EXPECT_TRUE(f.workers.stopped());
}

TEST(LocalWorkersTest, ANewLineageStopsEveryViewOnce) {
  Floor f(2);
  f.workers.StopAllBelow(MakeEpoch(2, 0));
  f.workers.StopAllBelow(MakeEpoch(2, 0));
  EXPECT_EQ(f.Take(), (Strings{"persist", "stop 2.0"}));
  f.workers.SetStopped(MakeEpoch(2, 0));
  EXPECT_TRUE(f.workers.StoppedBelow(MakeEpoch(2, 0)));
  f.workers.ForgetStopAll();
  EXPECT_FALSE(f.workers.StoppedBelow(MakeEpoch(2, 0)));
  f.workers.StopAllBelow(MakeEpoch(2, 0));
  EXPECT_EQ(f.Take(), (Strings{"stop 2.0"}));
}

TEST(LocalWorkersTest, TheWorkersAreArmedOnceInAView) {
  Floor f(3);
  f.workers.Arm();
  f.workers.Arm();
  f.state.EnterView(TestSuccessor(*f.view));
  f.workers.EnterView();
  f.workers.Arm();
  EXPECT_EQ(f.Take(), (Strings{"arm 1.1", "persist", "arm 1.2"}));
}

TEST(LocalWorkersTest, AfterARestartAResignedPodHasNoWorkersToWaitFor) {
  PersistentState stored = StoredIn(TestView(2));
  stored.resigned = true;
  EXPECT_TRUE(Floor(stored, 0).workers.stopped());
  EXPECT_TRUE(Floor(stored, 0).workers.all_dead());
}

TEST(LocalWorkersTest, FinishingIsOfOneViewAndTheNextOneGoesOn) {
  Floor f(3);
  EXPECT_TRUE(f.workers.SetFinishing(MakeEpoch(1, 1)));
  EXPECT_FALSE(f.workers.SetFinishing(MakeEpoch(1, 1)));
  EXPECT_TRUE(f.workers.finishing());
  f.state.EnterView(TestSuccessor(*f.view));
  EXPECT_FALSE(f.workers.finishing());
  EXPECT_TRUE(f.workers.ever_finishing());
}

TEST(LocalWorkersTest, TheSameWorkersAreNoNews) {
  Floor f(2);
  EXPECT_TRUE(f.workers.Update({})) << "until now they were not known";
  EXPECT_FALSE(f.workers.Update({}));
  EXPECT_TRUE(f.workers.Update({{0, 1, "", "", true}}));
  EXPECT_TRUE(f.workers.Alive(0, 1));
  EXPECT_FALSE(f.workers.Alive(0, 2));
}

}  // namespace
}  // namespace ringmaster::membership
