// How a pod makes way, leaves and ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sidecar/app/testing/agent_fixture.h"

namespace ringmaster::app {
namespace {

using membership::MakeEpoch;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(AgentTest, AskedToMakeWayItStopsItsWorkersStoresAndReports) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  log_.clear();
  agent_->orders().OnRecover(2, false);
  EXPECT_TRUE(Logged("stop"));
  EXPECT_FALSE(Logged("report")) << "the worker has not stopped yet";
  log_.clear();
  agent_->workers().OnFrame(
      2, {{"t", "stopped"}, {"epoch", MakeEpoch(2, 0)}, {"holds", MakeEpoch(1, 1)}});
  const auto stored = std::find(log_.begin(), log_.end(), "persist");
  EXPECT_LT(stored, std::find(log_.begin(), log_.end(), "report"));
  EXPECT_TRUE(Logged("report"));
  EXPECT_EQ(report_.lineage, 2u);
  ASSERT_NE(report_.view, nullptr);
  ASSERT_EQ(report_.candidate.workers.size(), 1u);
  EXPECT_EQ(report_.candidate.workers[0].holds, MakeEpoch(1, 1));
  // Of a lineage that has begun long ago.
  log_.clear();
  agent_->orders().OnRecover(1, false);
  EXPECT_FALSE(Logged("report"));
}

// Its worker trains on in a view of which this sidecar knows nothing.
TEST_F(AgentTest, WhoHasLostItsFileMakesWayOnlyWhenAWorkerOfBeforeHasSaidWhichViewItUses) {
  NameWorker(/*began=*/now_ - seconds(60));
  agent_->orders().OnRecover(2, false);
  Advance(seconds(5));
  EXPECT_FALSE(Logged("report"));
  agent_->workers().OnHello(
      2, false, {{"slot", 0}, {"incarnation", 1}, {"tcp", "t"}, {"epoch", MakeEpoch(1, 1)}}, 0);
  EXPECT_TRUE(Logged("stop"));
  EXPECT_FALSE(Logged("report"));
  agent_->workers().OnFrame(2, {{"t", "stopped"}, {"epoch", MakeEpoch(2, 0)}});
  EXPECT_TRUE(Logged("report"));
}

TEST_F(AgentTest, AWorkerOfBeforeThatIsNotHeardIsWaitedForUntilItsFenceHasPassed) {
  NameWorker(/*began=*/now_ - seconds(60));
  agent_->orders().OnRecover(2, false);
  Advance(seconds(10));
  EXPECT_FALSE(Logged("report"));
  Advance(seconds(2));
  EXPECT_TRUE(Logged("report"));
}

TEST_F(AgentTest, AWorkerThatBeganUnderThisSidecarCanBeInNoViewThatItDoesNotKnow) {
  NameWorker(/*began=*/now_ + milliseconds(1));
  agent_->orders().OnRecover(2, false);
  EXPECT_TRUE(Logged("report"));
}

TEST_F(AgentTest, ToBeginAgainWorkersThatHaveBeenInAViewAreEnded) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", MakeEpoch(1, 1)}});
  log_.clear();
  agent_->orders().OnRecover(2, true);
  EXPECT_TRUE(Logged("kill"));
}

TEST_F(AgentTest, ToBeginAgainAWorkerThatWasAwayIsEndedWhenItReturns) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", MakeEpoch(1, 1)}});
  agent_->workers().OnClosed(1);  // so is the launcher, for a moment
  agent_->orders().OnRecover(2, true);
  log_.clear();
  agent_->workers().OnHello(
      1, true, {{"slots", 1}, {"running", {{{"slot", 0}, {"incarnation", 1}, {"pid", 9}}}}}, 0);
  Advance(milliseconds(1500));
  EXPECT_TRUE(Logged("kill"));
}

TEST_F(AgentTest, AWorkerThatHasNotEndedLongAfterTheJobIsToldToLeave) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  agent_->orders().OnFinish("all ranks agreed to end");
  Advance(seconds(9));
  EXPECT_FALSE(Logged("left")) << "the ranks agree by themselves";
  Advance(seconds(2));
  EXPECT_TRUE(Logged("left"));
}

TEST_F(AgentTest, WhoHasLeftByPlanGoesOnUntilTheRecordHasTheViewThatDroppedIt) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  agent_->Terminate();
  Message dropped;
  dropped.kind = MessageKind::kDecided;
  dropped.from = "u1";
  dropped.incarnation = 1;
  auto view = *membership::DecodeView(FirstView());
  view.parent = view.epoch++;
  view.pods.erase(view.pods.begin());
  view.ranks.pop_back();
  dropped.value = std::make_shared<const membership::View>(view);
  agent_->peers().OnMessage(membership::EncodeMessage(dropped), "u1", "");
  EXPECT_TRUE(Logged("left"));
  agent_->workers().OnFrame(
      1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}, {"exitCode", 0}, {"byUs", true}});
  Advance(seconds(2));
  EXPECT_TRUE(Logged("record"));
  EXPECT_FALSE(agent_->Done()) << "the others may not have heard of the view";
  agent_->peers().OnRecordAnswer(membership::EncodeMessage(dropped));
  Advance(seconds(1));
  EXPECT_TRUE(agent_->Done());
}

// The worker of u2 has left at its boundary already, and the ring broke under this one's last step.
TEST_F(AgentTest, WhereAllLeaveAFurtherViewEndsAtItsFirstBoundary) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  agent_->orders().OnDrain({"u0", "u1", "u2"}, "Suspended", 0, {});
  EXPECT_TRUE(Logged("arm"));
  log_.clear();
  Message decided;
  decided.kind = MessageKind::kDecided;
  decided.from = "u1";
  decided.incarnation = 1;
  decided.value =
      std::make_shared<const membership::View>(*membership::DecodeView(ViewWithout("u2")));
  agent_->peers().OnMessage(membership::EncodeMessage(decided), "u1", "");
  const auto view = std::find(log_.begin(), log_.end(), "view");
  ASSERT_NE(view, log_.end());
  EXPECT_NE(std::find(log_.begin(), view, "arm"), view) << "else a step may begin in between";
}

// A first view of this pod alone: nobody else has the state.
std::string ViewOfOne(const std::string& first_view) {
  membership::View view = *membership::DecodeView(first_view);
  view.coordinator = "u0";
  view.pods.resize(1);
  view.ranks.resize(1);
  return membership::EncodeView(view);
}

// As a kubelet that shuts its node down does it: the pod may be killed sooner than its spec says.
TEST_F(AgentTest, AfterASignalAloneTheLastPodLeavesAsSoonAsTheOperatorWouldHaveSpoken) {
  StartWorker();
  agent_->orders().OnConnection(true);
  agent_->orders().OnViewDecided(ViewOfOne(FirstView()));
  agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", MakeEpoch(1, 1)}});
  agent_->Terminate();
  Advance(milliseconds(500));
  EXPECT_FALSE(Logged("arm"));
  Advance(milliseconds(600));
  EXPECT_TRUE(Logged("arm"));
}

TEST_F(AgentTest, AfterASignalTheLastPodWaitsForOthersIfTheOperatorSaysThatTheyMayCome) {
  StartWorker();
  agent_->orders().OnViewDecided(ViewOfOne(FirstView()));
  agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", MakeEpoch(1, 1)}});
  agent_->Terminate();
  Advance(milliseconds(500));
  agent_->orders().OnDrain({"u0"}, "Deleted", 1, /*left_ms=*/30000, /*all_leave=*/false);
  Advance(seconds(10));
  EXPECT_FALSE(Logged("arm"));
  Advance(seconds(5));
  EXPECT_TRUE(Logged("arm"));
}

// The operator fails over, say: it may have a replacement on its way.
TEST_F(AgentTest, AfterASignalTheLastPodWaitsAsLongForAnOperatorThatIsAway) {
  StartWorker();
  agent_->orders().OnViewDecided(ViewOfOne(FirstView()));
  agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", MakeEpoch(1, 1)}});
  agent_->Terminate();
  Advance(seconds(10));
  EXPECT_FALSE(Logged("arm"));
  agent_->orders().OnConnection(true);
  Advance(milliseconds(500));
  EXPECT_FALSE(Logged("arm")) << "it has to look first";
  Advance(milliseconds(600));
  EXPECT_TRUE(Logged("arm"));
}

// An operator of an earlier version names all that leave, and says no more.
TEST_F(AgentTest, ASignalTakesNothingBackOfWhatTheOperatorHasSaid) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", MakeEpoch(1, 1)}});
  agent_->orders().OnDrain({"u0", "u1", "u2"}, "Suspended", 1, /*left_ms=*/30000, {});
  agent_->Terminate();
  log_.clear();
  agent_->orders().OnViewDecided(ViewWithout("u2"));
  EXPECT_TRUE(Logged("arm"));
}

// All pods of the view are deleted one after the other, and their replacements are on the way.
TEST_F(AgentTest, WhereOthersMayTakeOverThePodsWaitForThemForHalfOfTheirTime) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", MakeEpoch(1, 1)}});
  agent_->orders().OnDrain({"u0", "u1", "u2"}, "Deleted", 1, /*left_ms=*/30000,
                           /*all_leave=*/false);
  Advance(seconds(13));
  EXPECT_FALSE(Logged("arm"));
  Advance(seconds(2));
  EXPECT_TRUE(Logged("arm"));
}

TEST_F(AgentTest, WhereTheJobIsOverThePodsWaitForNobody) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", MakeEpoch(1, 1)}});
  agent_->orders().OnDrain({"u0"}, "Deleted", 1, /*left_ms=*/30000, /*all_leave=*/false);
  EXPECT_FALSE(Logged("arm"));
  agent_->orders().OnDrain({"u0"}, "JobDeleted", 0, {}, /*all_leave=*/true);
  EXPECT_TRUE(Logged("arm")) << "whoever else is in the view leaves, too";
}

TEST_F(AgentTest, NothingLeavesWhenTheStateCannotBeStored) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  log_.clear();
  disk_full_ = true;
  agent_->workers().OnFrame(
      1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}, {"exitCode", 137}, {"signal", 9}});
  EXPECT_FALSE(agent_->Done()) << "there may be room again";
  Advance(MembershipLoop::kStorePatience + milliseconds(50));
  EXPECT_THAT(log_, testing::Each("persist failed"));
  EXPECT_TRUE(agent_->Done());
  EXPECT_EQ(agent_->exit_code(), 1);
}

TEST_F(AgentTest, SigtermBeforeTheFirstViewLetsTheWorkersGo) {
  StartWorker();
  agent_->orders().OnTarget({}, 0);
  Advance(milliseconds(200));
  agent_->Terminate();
  EXPECT_TRUE(Logged("finish"));
  EXPECT_TRUE(Logged("left"));
  agent_->workers().OnFrame(
      1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}, {"exitCode", 0}, {"byUs", true}});
  EXPECT_FALSE(agent_->Done());
  Advance(milliseconds(500));
  EXPECT_TRUE(agent_->Done());
  EXPECT_EQ(agent_->exit_code(), 0);
}

TEST_F(AgentTest, AtTheEndOfTheJobNothingIsWaitedForOnceItsWordIsOut) {
  for (const bool at_once : {false, true}) {
    StartWorker();
    agent_->orders().OnViewDecided(FirstView());
    agent_->workers().OnFrame(2, {{"t", "finished"}, {"epoch", MakeEpoch(1, 1)}});
    if (!at_once) Advance(seconds(1));  // an interpreter takes its time to exit
    agent_->workers().OnFrame(
        1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}, {"exitCode", 0}, {"byUs", true}});
    agent_->Terminate();
    EXPECT_EQ(agent_->Done(), !at_once) << "the operator may not have heard it yet";
    SetUp();
  }
}

// A pod that was taken for lost may come back, and nobody else would know that the job is over.
TEST_F(AgentTest, AtTheEndOfTheJobAnOperatorThatHasNotWrittenItDownIsWaitedFor) {
  for (const bool writes : {true, false}) {
    StartWorker();
    agent_->orders().OnConnection(true);
    agent_->orders().OnViewDecided(FirstView());
    agent_->workers().OnFrame(2, {{"t", "finished"}, {"epoch", MakeEpoch(1, 1)}});
    agent_->workers().OnFrame(
        1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}, {"exitCode", 0}, {"byUs", true}});
    agent_->Terminate();
    Advance(seconds(15));
    EXPECT_FALSE(agent_->Done());
    agent_->orders().OnConnection(false);
    agent_->orders().OnConnection(true);
    writes ? agent_->orders().OnFinish("all ranks agreed to end") : Advance(seconds(6));
    Advance(milliseconds(250));
    EXPECT_TRUE(agent_->Done());
    SetUp();
  }
}

TEST_F(AgentTest, AtTheEndOfAJobThatIsDeletedTheOperatorHasNothingToWriteDown) {
  StartWorker();
  agent_->orders().OnConnection(true);
  agent_->orders().OnViewDecided(FirstView());
  agent_->workers().OnFrame(2, {{"t", "finished"}, {"epoch", MakeEpoch(1, 1)}});
  agent_->orders().OnDrain({"u0", "u1", "u2"}, "JobEnded", 0, {}, true);
  agent_->workers().OnFrame(
      1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}, {"exitCode", 0}, {"byUs", true}});
  agent_->Terminate();
  Advance(seconds(1));
  EXPECT_TRUE(agent_->Done());
}

TEST_F(AgentTest, APodWithLittleTimeWaitsForTheBoundaryForHalfOfIt) {
  struct {
    int64_t left_ms;
    milliseconds waits;
  } cases[] = {{30000, seconds(28)},
               {2000, seconds(1)},
               {1000, milliseconds(500)},
               {-700, milliseconds(250)}};
  for (const auto& [left_ms, waits] : cases) {
    StartWorker();
    agent_->orders().OnViewDecided(FirstView());
    agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", MakeEpoch(1, 1)}});
    agent_->orders().OnDrain({"u0"}, "Deleted", 1000 + left_ms);
    Advance(waits - milliseconds(50));
    EXPECT_FALSE(Logged("stop")) << left_ms;
    Advance(milliseconds(100));
    EXPECT_TRUE(Logged("stop")) << left_ms << ": it gives the step up, to resign in time";
    log_.clear();
    SetUp();
  }
}

TEST_F(AgentTest, ADrainWaitsForTheBoundaryThoughTheClockOfThisNodeIsAhead) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", MakeEpoch(1, 1)}});
  agent_->orders().OnDrain({"u0"}, "Deleted", /*deadline_unix_ms=*/1, /*left_ms=*/30000);
  Advance(seconds(27));
  EXPECT_FALSE(Logged("stop"));
  Advance(seconds(2));
  EXPECT_TRUE(Logged("stop"));
}

TEST_F(AgentTest, SigtermEndsWithinTheGraceThoughAWorkerHangs) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  agent_->Terminate();
  Advance(seconds(27));
  EXPECT_FALSE(agent_->Done());
  Advance(seconds(3));
  EXPECT_TRUE(agent_->Done());
}

}  // namespace
}  // namespace ringmaster::app
