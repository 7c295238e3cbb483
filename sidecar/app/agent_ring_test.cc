// What the agent makes of a ring that breaks and of sidecars that it does not reach.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sidecar/app/testing/agent_fixture.h"

namespace ringmaster::app {
namespace {

using membership::MakeEpoch;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(AgentTest, AViewThatIsBrokenForAWorkerHasASuccessorWhenThatLasts) {
  for (const char* type : {"suspect", "broken"}) {
    SetUp();
    StartWorker();
    agent_->orders().OnViewDecided(FirstView());
    agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", MakeEpoch(1, 1)}});
    log_.clear();
    agent_->workers().OnFrame(
        2, {{"t", type}, {"epoch", MakeEpoch(1, 1)}, {"rank", 2}, {"reason", "reset"}});
    Advance(milliseconds(1250));
    EXPECT_THAT(log_, testing::Each("pong")) << type;
    Advance(milliseconds(1000));
    EXPECT_TRUE(Logged("suspect to u1")) << type << json(log_).dump();
    EXPECT_THAT(suspected_, testing::IsEmpty()) << "nobody is to be left out";
    const json links = json::array({{{"pod", "p2"}, {"breaks", 1}, {"kept", false}}});
    EXPECT_EQ(agent_->Status()["brokenLinks"], links);
  }
}

TEST_F(AgentTest, ALinkThatBreaksInThreeViewsAccusesThePodAtItsOtherEnd) {
  StartWorker();
  membership::View view = *membership::DecodeView(FirstView());
  for (uint64_t number = 1; number <= 3; ++number) {
    view.epoch = MakeEpoch(1, number);
    agent_->orders().OnViewDecided(membership::EncodeView(view));
    log_.clear();
    agent_->workers().OnFrame(
        2, {{"t", "broken"}, {"epoch", view.epoch}, {"rank", 2}, {"reason", "reset"}});
    Advance(milliseconds(1750));
    const std::vector<std::string> accused{"u2"};
    EXPECT_EQ(suspected_, number < 3 ? std::vector<std::string>() : accused) << number;
  }
}

TEST_F(AgentTest, AnUnreachableSidecarAloneIsNoSuspicion) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  log_.clear();
  agent_->peers().OnUnreachable("u2", "reset");
  Advance(milliseconds(500));
  EXPECT_FALSE(Logged("suspect to u1"));
}

TEST_F(AgentTest, AnUnreachableSidecarAndABrokenRingAreAPodThatIsGoneWhicheverShowsFirst) {
  const json broken_ring = {
      {"t", "suspect"}, {"epoch", MakeEpoch(1, 1)}, {"rank", 2}, {"reason", "connection closed"}};
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  log_.clear();
  agent_->peers().OnUnreachable("u2", "reset");
  unreachable_ = "u2";
  EXPECT_FALSE(Logged("suspect to u1"));
  agent_->workers().OnFrame(2, broken_ring);
  EXPECT_TRUE(Logged("suspect to u1")) << json(log_).dump();

  unreachable_ = "";
  SetUp();
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  log_.clear();
  agent_->workers().OnFrame(2, broken_ring);
  EXPECT_FALSE(Logged("suspect to u1"));
  agent_->peers().OnUnreachable("u2", "reset");
  EXPECT_TRUE(Logged("suspect to u1")) << json(log_).dump();
}

TEST_F(AgentTest, ABrokenRingToAnotherPodSaysNothingOfAnUnreachableSidecar) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  log_.clear();
  agent_->workers().OnFrame(
      2, {{"t", "suspect"}, {"epoch", MakeEpoch(1, 1)}, {"rank", 1}, {"reason", "closed"}});
  agent_->peers().OnUnreachable("u2", "reset");
  EXPECT_FALSE(Logged("suspect to u1")) << json(log_).dump();
}

TEST_F(AgentTest, ASuspicionOfAnOldViewOrNoRankIsNothing) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  log_.clear();
  for (int rank : {-1, 3, 99})
    agent_->workers().OnFrame(2, {{"t", "suspect"}, {"epoch", MakeEpoch(1, 1)}, {"rank", rank}});
  agent_->workers().OnFrame(2, {{"t", "suspect"}, {"epoch", 5}, {"rank", 2}});
  for (int rank : {-2, 3, 99})
    agent_->workers().OnFrame(2, {{"t", "broken"}, {"epoch", MakeEpoch(1, 1)}, {"rank", rank}});
  agent_->workers().OnFrame(2, {{"t", "broken"}, {"epoch", 5}, {"rank", 2}});
  Advance(milliseconds(4000));
  EXPECT_THAT(log_, testing::Each("pong"));
}

}  // namespace
}  // namespace ringmaster::app
