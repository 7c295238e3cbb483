#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sidecar/app/testing/agent_fixture.h"

namespace ringmaster::app {
namespace {

using membership::MakeEpoch;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(AgentTest, TellsWhoIsMissingUntilAllHaveCalledInit) {
  NameWorker(/*began=*/now_ + milliseconds(1));
  EXPECT_EQ(missing_, std::vector<uint32_t>{0});
  StartWorker();
  EXPECT_TRUE(ready_);
  EXPECT_EQ(agent_->Status()["state"], "Waiting");
}

TEST_F(AgentTest, WelcomesFoundersOnlyWhenTheOperatorHasLooked) {
  StartWorker();
  agent_->orders().OnAccepted();
  Advance(milliseconds(500));
  EXPECT_FALSE(Logged("welcome"));
  agent_->orders().OnTarget({}, 0);
  Advance(milliseconds(200));
  EXPECT_TRUE(Logged("welcome"));
}

TEST_F(AgentTest, InstallsTheFirstViewAndIsReadyWhenItsWorkersHaveIt) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  EXPECT_TRUE(Logged("view"));
  EXPECT_EQ(watched_, 3u);
  EXPECT_FALSE(agent_->Ready());
  EXPECT_EQ(agent_->Status()["state"], "Rebuilding");
  agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", MakeEpoch(1, 1)}});
  EXPECT_TRUE(agent_->Ready());
  json status = agent_->Status();
  EXPECT_EQ(status["state"], "Training");
  EXPECT_EQ(status["workers"][0]["rank"], 0);
  EXPECT_EQ(status["epoch"], MakeEpoch(1, 1));
}

// The record may be gone, and with the view nobody would know where the job goes on.
TEST_F(AgentTest, AViewThatIsOnlyStoredIsReportedThoughThePodHasLeftIt) {
  stored_.view = std::make_shared<membership::View>(*membership::DecodeView(FirstView()));
  stored_.resigned = true;
  SetUp();
  EXPECT_FALSE(Logged("view"));
  EXPECT_EQ(reported_view_, FirstView());
}

TEST_F(AgentTest, ADeadWorkerIsSaidToTheOthersAtOnceAndAfterTheStateIsStored) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  log_.clear();
  agent_->workers().OnFrame(1, {{"t", "exited"},
                                {"slot", 0},
                                {"incarnation", 1},
                                {"exitCode", 137},
                                {"signal", 9},
                                {"restarting", true}});
  ASSERT_FALSE(log_.empty());
  EXPECT_EQ(log_[0], "persist");
  EXPECT_TRUE(Logged("resign to u1")) << json(log_).dump();
  EXPECT_TRUE(exits_.at(0).restarting);
}

TEST_F(AgentTest, ARankThatIsWaitedForIsShownAndReportedWhenItChanges) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", MakeEpoch(1, 1)}});
  json ping = {{"t", "ping"}, {"n", 1}, {"epoch", MakeEpoch(1, 1)}};
  const auto tick = [&](int waited_ms) {
    if (waited_ms > 0)
      ping["stalls"] = {{{"tensor", "x"}, {"asked", 2}, {"missing", {1}}, {"waitedMs", waited_ms}}};
    agent_->workers().OnFrame(2, ping);
    agent_->Tick();
  };
  tick(60'000);
  EXPECT_EQ(agent_->Status()["stalls"][0]["pods"], json({"p1"}));
  EXPECT_TRUE(stalls_.empty()) << "no operator listens";
  agent_->orders().OnConnection(true);
  tick(61'000);
  tick(62'000);
  EXPECT_EQ(agent_->Status()["stalls"][0]["waitedMs"], 62'000);
  const std::string said = "'x': asked for by 2 ranks, not by rank 1 (p1)";
  EXPECT_EQ(stalls_, std::vector<std::string>{said});
  agent_->orders().OnConnection(false);
  agent_->orders().OnConnection(true);
  tick(63'000);
  EXPECT_EQ(stalls_, (std::vector<std::string>{said, said})) << "another one has not heard it";
  ping.erase("stalls");
  tick(0);
  EXPECT_EQ(stalls_.back(), "none");
  EXPECT_EQ(agent_->Status()["stalls"], json::array());
}

TEST_F(AgentTest, AGpuThatFailsIsShownAndReportedToEveryOperator) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", MakeEpoch(1, 1)}});
  agent_->orders().OnConnection(true);
  EXPECT_TRUE(agent_->Ready());
  const auto tick = [&](const json& gpu) {
    agent_->workers().OnFrame(2,
                              {{"t", "ping"}, {"n", 1}, {"epoch", MakeEpoch(1, 1)}, {"gpu", gpu}});
    agent_->Tick();
  };
  json gpu = {{"gpu", "0000:17:00.0"}, {"celsius", 61}, {"xids", {{"31", 2u}}}};
  tick(gpu);
  EXPECT_TRUE(agent_->Ready());
  EXPECT_EQ(agent_->Status()["gpus"][0]["celsius"], 61);
  EXPECT_TRUE(failing_gpus_.empty());
  gpu["failing"] = "Xid 79";
  tick(gpu);
  gpu["celsius"] = 62;
  tick(gpu);
  tick("nonsense");
  const std::string said = "GPU 0000:17:00.0 of worker 0 fails: Xid 79";
  EXPECT_EQ(failing_gpus_, std::vector<std::string>{said}) << "the temperature is no news";
  EXPECT_FALSE(agent_->Ready());
  EXPECT_EQ(agent_->Status()["gpus"][0]["failing"], "Xid 79");
  agent_->workers().OnFrame(1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}, {"exitCode", 1}});
  agent_->orders().OnConnection(false);
  agent_->orders().OnConnection(true);
  agent_->Tick();
  EXPECT_EQ(failing_gpus_, (std::vector<std::string>{said, said}))
      << "another one has not heard it, though the worker has ended of it";
  const std::string text = metrics_.Text();
  const std::string labels = R"({job_name="job",namespace="default",pod="p0",slot="0"} )";
  for (const char* line : {"ringmaster_gpu_healthy", "ringmaster_gpu_throttled"})
    EXPECT_NE(text.find(line + labels + "0"), std::string::npos) << text;
  EXPECT_NE(text.find("ringmaster_gpu_temperature_celsius" + labels + "62"), std::string::npos);
}

TEST_F(AgentTest, APlannedChangeThatNoStepsEndLetsHappenIsReportedOnceThatLasts) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", MakeEpoch(1, 1)}});
  agent_->orders().OnConnection(true);
  Message plan;
  plan.kind = MessageKind::kPlan;
  plan.from = "u1";
  plan.incarnation = 1;
  plan.view = MakeEpoch(1, 1);
  plan.number = 7;
  agent_->peers().OnMessage(membership::EncodeMessage(plan), "u1", "");
  Advance(milliseconds(1900));
  EXPECT_TRUE(awaited_.empty()) << "most steps end in less";
  Advance(milliseconds(5000));
  ASSERT_EQ(awaited_.size(), 1U) << "once";
  EXPECT_GE(awaited_[0], seconds(2));
  EXPECT_LE(awaited_[0], milliseconds(2300));
  agent_->orders().OnConnection(false);
  agent_->orders().OnConnection(true);
  Advance(milliseconds(300));
  ASSERT_EQ(awaited_.size(), 2U) << "another operator has not heard it";
  EXPECT_GE(awaited_[1], seconds(6));
  agent_->workers().OnFrame(2, {{"t", "boundary"}, {"epoch", MakeEpoch(1, 1)}});
  Advance(milliseconds(300));
  ASSERT_EQ(awaited_.size(), 3U);
  EXPECT_EQ(awaited_[2], milliseconds(0));
}

TEST(OperatorReportsTest, AStepThatEndedUnheardIsNotCountedToTheNextOne) {
  std::vector<milliseconds> told;
  OperatorOutputs outputs;
  outputs.report_step_awaited = [&](milliseconds awaited) { told.push_back(awaited); };
  OperatorReports reports(outputs);
  const SteadyTime begin{seconds(100)};
  reports.StepAwaited(true, true, begin);
  reports.StepAwaited(true, true, begin + seconds(3));
  ASSERT_EQ(told.size(), 1U);
  reports.StepAwaited(false, false, begin + seconds(10));
  reports.StepAwaited(true, false, begin + seconds(20));
  reports.ForgetHealth();
  reports.StepAwaited(true, true, begin + seconds(23));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[1], seconds(3));
}

// What the survivors go on from is `resumed` steps after a lost pod's heartbeat had told of 12.
struct StepsCase {
  uint64_t epoch_heard, resumed;
  int lost;
};
class StepsLostTest : public AgentTest, public testing::WithParamInterface<StepsCase> {};

TEST_P(StepsLostTest, AreThoseThatSomebodyHadCompletedAndNobodyGoesOnFrom) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", MakeEpoch(1, 1)}});
  agent_->workers().OnFrame(2, {{"t", "ping"}, {"n", 1}, {"step", 10}, {"epoch", MakeEpoch(1, 1)}});
  agent_->peers().OnHeard("u2", GetParam().epoch_heard, 12);
  agent_->orders().OnViewDecided(ViewWithout("u2"));
  const Epoch second = MakeEpoch(1, 2);
  agent_->workers().OnFrame(2, {{"t", "installed"}, {"epoch", second}});
  const json done = {{"t", "rebuilt"},
                     {"epoch", second},
                     {"step", GetParam().resumed},
                     {"resumed", GetParam().resumed},
                     {"seconds", {{"redo", 0.1}}}};
  agent_->workers().OnFrame(2, done);
  EXPECT_EQ(json::parse(rebuild_)["stepsLost"], GetParam().lost);
  agent_->workers().OnFrame(2, done);
  EXPECT_EQ(json::parse(rebuild_)["stepsLost"], GetParam().lost) << "said twice, counted once";
  EXPECT_EQ(agent_->Status()["rebuilds"].back()["stepsLost"], GetParam().lost);
  EXPECT_EQ(agent_->Status(1)["rebuilds"], json::array({agent_->Status()["rebuilds"].back()}));
  EXPECT_TRUE(agent_->Status(0)["rebuilds"].empty());
}

INSTANTIATE_TEST_SUITE_P(Cases, StepsLostTest,
                         testing::Values(StepsCase{MakeEpoch(1, 1), 12, 0},
                                         StepsCase{MakeEpoch(1, 1), 13, 0},
                                         StepsCase{MakeEpoch(1, 1), 10, 2},
                                         // Of another view than ours: may be void already.
                                         StepsCase{MakeEpoch(1, 0), 10, 0}));

TEST_F(AgentTest, AJobThatBeginsAgainCountsItsStepsFromTheFirst) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  agent_->workers().OnFrame(2, {{"t", "ping"}, {"n", 1}, {"step", 10}, {"epoch", MakeEpoch(1, 1)}});
  EXPECT_EQ(agent_->Status()["progress"]["step"], 10);
  agent_->workers().OnFrame(
      1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}, {"exitCode", 137}, {"signal", 9}});
  agent_->workers().OnClosed(2);
  membership::View again = *membership::DecodeView(FirstView());
  again.parent = again.epoch;
  again.epoch = MakeEpoch(2, 1);
  again.ranks[0].incarnation = 2;
  agent_->workers().OnHello(3, false, {{"slot", 0}, {"incarnation", 2}, {"tcp", "t"}}, 0);
  agent_->workers().OnFrame(3, {{"t", "enter"}});
  EXPECT_EQ(agent_->Status()["progress"]["step"], 10) << "not yet";
  agent_->orders().OnViewDecided(membership::EncodeView(again));
  EXPECT_EQ(agent_->Status()["progress"]["step"], 0);
  agent_->workers().OnFrame(3, {{"t", "ping"}, {"n", 1}, {"step", 2}, {"epoch", MakeEpoch(2, 1)}});
  EXPECT_EQ(agent_->Status()["progress"]["step"], 2);
}

class AgentWithoutOperatorTest : public AgentTest {
 protected:
  AgentWithoutOperatorTest() { operator_target_.clear(); }
};

TEST_F(AgentWithoutOperatorTest, WhenAllThatHeldTheStateHaveDiedThoseWhoComeAreToldToGiveUp) {
  LoseAllWorkers();
  AdvanceWithPingsOf(3, seconds(4));
  EXPECT_NE(errors_[3].find("all workers that had the job's state have died (view 1.1)"),
            std::string::npos)
      << errors_[3];
}

TEST_F(AgentTest, WhenAllThatHeldTheStateHaveDiedTheOperatorIsWaitedForAsLongAsItIsThere) {
  LoseAllWorkers();
  AdvanceWithPingsOf(3, seconds(4));
  EXPECT_TRUE(errors_.empty()) << "it may only be on its way to another node";
  agent_->orders().OnConnection(true);
  AdvanceWithPingsOf(3, 2 * options_.init_timeout);
  EXPECT_TRUE(errors_.empty()) << "it says what it waits for";
  agent_->orders().OnConnection(false);
  AdvanceWithPingsOf(3, options_.init_timeout - seconds(1));
  EXPECT_TRUE(errors_.empty());
  AdvanceWithPingsOf(3, seconds(2));
  EXPECT_FALSE(errors_[3].empty());
}

TEST_F(AgentTest, ThatItsViewCantTrainIsSaidWhenItLasts) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  ASSERT_FALSE(healths_.empty());
  EXPECT_TRUE(healths_.back().first);
  agent_->peers().OnSuspect("u1", "silent");
  agent_->peers().OnSuspect("u2", "silent");
  Advance(milliseconds(900));
  EXPECT_TRUE(healths_.back().first);
  Advance(milliseconds(200));
  EXPECT_FALSE(healths_.back().first);
  EXPECT_GE(healths_.back().second, seconds(1));
  const auto said = healths_.size();
  Advance(seconds(1));
  EXPECT_EQ(healths_.size(), said);
  agent_->peers().OnHeard("u1", MakeEpoch(1, 1), 0);
  agent_->peers().OnHeard("u2", MakeEpoch(1, 1), 0);
  Advance(milliseconds(100));
  EXPECT_TRUE(healths_.back().first);
}

TEST_F(AgentTest, GarbageFromOutsideChangesNothing) {
  StartWorker();
  agent_->orders().OnViewDecided("{");
  agent_->orders().OnViewDecided("{\"epoch\":\"x\"}");
  agent_->peers().OnMessage("[]", "u1", "");
  agent_->peers().OnMessage("{\"kind\":1}", "u1", "");
  agent_->peers().OnRecordAnswer("");
  EXPECT_EQ(agent_->Status()["state"], "Waiting");
}

}  // namespace
}  // namespace ringmaster::app
