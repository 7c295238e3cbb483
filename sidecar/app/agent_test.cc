#include "sidecar/app/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "common/membership/message_json.h"
#include "common/membership/view_json.h"
#include "sidecar/health/metrics.h"

namespace ringmaster::app {
namespace {

using membership::MakeEpoch;
using membership::Message;
using membership::MessageKind;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// One agent with fake outputs; the other pods are names.
class AgentTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.job_name = "job";
    options_.job_uid = "job-uid";
    options_.pod_name = "p0";
    options_.pod_uid = "u0";
    options_.operator_target = operator_target_;
    AgentOutputs outputs;
    outputs.clock.now = [this] { return now_; };
    outputs.clock.unix_ms = [] { return int64_t{1000}; };
    outputs.persist =
        [this](const membership::PersistentState&) -> tl::expected<void, std::string> {
      log_.push_back(disk_full_ ? "persist failed" : "persist");
      if (disk_full_) return tl::unexpected(std::string("no space"));
      return {};
    };
    outputs.link.send = [this](uint64_t to, const json& frame) {
      log_.push_back(frame["t"]);
      if (frame["t"] == "error") errors_[to] = frame["message"];
    };
    outputs.link.refuse = [](uint64_t, const std::string&) {};
    outputs.peers.deliver = [this](const std::string& to, const std::string&,
                                   const Message& message) {
      log_.push_back(std::string(membership::MessageKindText(message.kind)) + " to " + to);
      if (message.kind == MessageKind::kSuspect) suspected_ = message.pods;
    };
    outputs.job_operator.ask_record = [this](const Message&) { log_.push_back("record"); };
    outputs.peers.watch = [this](const std::vector<membership::Pod>& pods) {
      watched_ = pods.size();
    };
    outputs.peers.suspects = [](const std::string&) { return false; };
    outputs.peers.unreachable = [this](const std::string& pod) { return pod == unreachable_; };
    outputs.peers.set_news = [](Epoch, uint64_t) {};
    outputs.job_operator.report_readiness = [this](bool ready, const std::vector<uint32_t>& missing,
                                                   const std::string&) {
      ready_ = ready;
      missing_ = missing;
    };
    outputs.job_operator.report_view = [this](const std::string& view, const std::string& rebuild,
                                              uint64_t) {
      reported_view_ = view;
      rebuild_ = rebuild;
    };
    outputs.job_operator.report_exit = [this](const job::WorkerExit& exit) {
      exits_.push_back(exit);
    };
    outputs.job_operator.report_finished = [](Epoch) {};
    outputs.job_operator.report_health = [this](bool able, milliseconds unable) {
      healths_.emplace_back(able, unable);
    };
    outputs.job_operator.report_stalls = [this](const std::vector<job::Stall>& stalls) {
      stalls_.push_back(stalls.empty() ? "none" : job::Describe(stalls[0]));
    };
    outputs.job_operator.report_recovery = [this](const membership::RecoveryReport& report) {
      log_.push_back("report");
      report_ = report;
    };
    membership::Pod self;
    self.uid = "u0";
    self.name = "p0";
    agent_ = std::make_unique<Agent>(options_, self, stored_, outputs, &metrics_);
    agent_->Start();
  }

  // The worker of slot 0, connected and waiting in init.
  void StartWorker() {
    agent_->workers().OnHello(
        1, true, {{"slots", 1}, {"running", {{{"slot", 0}, {"incarnation", 1}, {"pid", 9}}}}}, 0);
    agent_->workers().OnHello(2, false, {{"slot", 0}, {"incarnation", 1}, {"tcp", "t"}}, 0);
    agent_->workers().OnFrame(2, {{"t", "enter"}});
  }

  // u0 and two others, one rank each, u1 coordinates.
  static std::string FirstView() {
    membership::View view;
    view.epoch = MakeEpoch(1, 1);
    view.coordinator = "u1";
    for (uint32_t i = 0; i < 3; ++i) {
      membership::Pod pod;
      pod.uid = "u" + std::to_string(i);
      pod.name = "p" + std::to_string(i);
      pod.incarnation = 1;
      pod.address = "10.0.0.1:" + std::to_string(100 + i);
      pod.heartbeat = pod.http = pod.address;
      view.pods.push_back(pod);
      view.ranks.push_back({.pod = i, .slot = 0, .incarnation = 1, .tcp = "t", .shm = ""});
    }
    return membership::EncodeView(view);
  }
  // The successor of the first view, made because that pod is lost.
  static std::string ViewWithout(const std::string& pod) {
    membership::View view = *membership::DecodeView(FirstView());
    view.parent = view.epoch;
    view.epoch = MakeEpoch(1, 2);
    view.reason = membership::Reason::kPodLost;
    const int gone = view.FindPod(pod);
    view.pods.erase(view.pods.begin() + gone);
    view.ranks.erase(view.ranks.begin() + gone);
    return membership::EncodeView(view);
  }

  bool Logged(const std::string& entry) const {
    return std::find(log_.begin(), log_.end(), entry) != log_.end();
  }
  void Resigns(const std::string& pod) {
    Message message;
    message.kind = MessageKind::kResign;
    message.from = pod;
    message.incarnation = 1;
    message.view = MakeEpoch(1, 1);
    agent_->peers().OnMessage(membership::EncodeMessage(message), pod, "");
  }
  void Advance(milliseconds by) { AdvanceWithPingsOf(2, by); }
  void AdvanceWithPingsOf(uint64_t connection, milliseconds by) {
    for (milliseconds step(50); by.count() > 0; by -= step) {
      now_ += step;
      agent_->workers().OnFrame(connection, {{"t", "ping"}, {"n", 1}});
      agent_->Tick();
    }
  }

  // Of the view that all three have been in nobody trains any more; connection 3 is a new worker.
  void LoseAllWorkers() {
    StartWorker();
    agent_->orders().OnViewDecided(FirstView());
    agent_->workers().OnFrame(
        1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}, {"exitCode", 137}, {"signal", 9}});
    agent_->workers().OnHello(3, false, {{"slot", 0}, {"incarnation", 2}, {"tcp", "t"}}, 0);
    Resigns("u1");
    AdvanceWithPingsOf(3, seconds(4));
    EXPECT_TRUE(errors_.empty()) << "u2 may go on";
    Resigns("u2");
  }

  std::string operator_target_ = "unix:/nowhere";
  SidecarOptions options_;
  health::Metrics metrics_{"default", "job", "p0"};
  SteadyTime now_{seconds(1000)};
  bool disk_full_ = false, ready_ = false;
  std::vector<uint32_t> missing_;
  size_t watched_ = 0;
  std::string reported_view_;
  membership::PersistentState stored_{.incarnation = 1};
  std::string unreachable_;
  std::string rebuild_;
  std::vector<std::string> log_;
  std::vector<std::string> suspected_;      // in the last message that says so
  std::map<uint64_t, std::string> errors_;  // by connection
  std::vector<job::WorkerExit> exits_;
  std::vector<std::string> stalls_;
  std::vector<std::pair<bool, milliseconds>> healths_;
  membership::RecoveryReport report_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(AgentTest, TellsWhoIsMissingUntilAllHaveCalledInit) {
  agent_->workers().OnHello(
      1, true, {{"slots", 1}, {"running", {{{"slot", 0}, {"incarnation", 1}, {"pid", 9}}}}}, 0);
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
  agent_->orders().OnTarget(1, 0);
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

TEST_F(AgentTest, AskedToMakeWayItStopsItsWorkersStoresAndReports) {
  StartWorker();
  agent_->orders().OnViewDecided(FirstView());
  log_.clear();
  agent_->orders().OnRecover(2, false);
  EXPECT_TRUE(Logged("stop"));
  EXPECT_FALSE(Logged("report")) << "the worker has not stopped yet";
  log_.clear();
  agent_->workers().OnFrame(2, {{"t", "stopped"}, {"epoch", MakeEpoch(2, 0)}});
  const auto stored = std::find(log_.begin(), log_.end(), "persist");
  EXPECT_LT(stored, std::find(log_.begin(), log_.end(), "report"));
  EXPECT_TRUE(Logged("report"));
  EXPECT_EQ(report_.lineage, 2u);
  ASSERT_NE(report_.view, nullptr);
  EXPECT_EQ(report_.candidate.workers.size(), 1u);
  // Of a lineage that has begun long ago.
  log_.clear();
  agent_->orders().OnRecover(1, false);
  EXPECT_FALSE(Logged("report"));
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

TEST_F(AgentTest, GarbageFromOutsideChangesNothing) {
  StartWorker();
  agent_->orders().OnViewDecided("{");
  agent_->orders().OnViewDecided("{\"epoch\":\"x\"}");
  agent_->peers().OnMessage("[]", "u1", "");
  agent_->peers().OnMessage("{\"kind\":1}", "u1", "");
  agent_->peers().OnRecordAnswer("");
  EXPECT_EQ(agent_->Status()["state"], "Waiting");
}

TEST_F(AgentTest, SigtermBeforeTheFirstViewLetsTheWorkersGo) {
  StartWorker();
  agent_->orders().OnTarget(1, 0);
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
