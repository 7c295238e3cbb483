#include "sidecar/app/worker_table.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "sidecar/app/testing/worker_table_fixture.h"

namespace ringmaster::app {
namespace {

using Types = std::vector<std::string>;

TEST_F(WorkerTableTest, WelcomeWaitsUntilItIsKnownWhetherTheJobIsFounded) {
  Make(1, false);
  Worker(2, 0, 1);
  EXPECT_TRUE(sent_.empty());
  table_->orders().SettleWelcome();
  EXPECT_EQ(LastTo(2, "welcome")["state"], "bootstrap");
  Make(1, false);
  Worker(3, 0, 1);
  table_->orders().Install(MakeView(kFirst, {}), now_);
  EXPECT_EQ(LastTo(3, "welcome")["state"], "joining");
  EXPECT_EQ(TypesTo(3), Types{"welcome"}) << "a view that does not list a joiner is no news to it";
}

TEST_F(WorkerTableTest, IsReadyWhenAllSlotsHaveCalledInit) {
  Make(2);
  Worker(2, 0, 1);
  Worker(3, 1, 1);
  Frame(2, {{"t", "enter"}});
  EXPECT_EQ(table_->processes().MissingSlots(), std::vector<uint32_t>{1});
  Frame(3, {{"t", "enter"}});
  EXPECT_TRUE(table_->processes().MissingSlots().empty());
  EXPECT_EQ(table_->processes().Living()[1].tcp, "t");
}

TEST_F(WorkerTableTest, StopIsAnsweredWhenAllHaveStoppedOrDied) {
  Make(2);
  slots_ = 2;
  Launcher();
  Worker(2, 0, 1);
  Worker(3, 1, 1);
  table_->orders().Install(MakeView(kFirst, {{0, 1}, {1, 1}}), now_);
  table_->orders().Stop(kFirst);
  EXPECT_EQ(LastTo(3, "stop")["epoch"], kFirst);
  Frame(2, {{"t", "stopped"}, {"epoch", kFirst}});
  EXPECT_TRUE(stopped_.empty());
  Frame(1, {{"t", "exited"}, {"slot", 1}, {"incarnation", 1}, {"exitCode", 137}, {"signal", 9}});
  EXPECT_EQ(stopped_, std::vector<Epoch>{kFirst});
  EXPECT_EQ(exits_[0].signal, 9);
}

// Who waits for the stop may begin the job anew where nobody has its state.
TEST_F(WorkerTableTest, ThatAJoinerHasTheStateIsKnownBeforeTheStopIsAnswered) {
  Make(1);
  Launcher();
  Worker(2, 0, 1);
  table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
  Frame(2, {{"t", "ping"}, {"n", 1}, {"holds", 0}});
  EXPECT_EQ(table_->processes().Living()[0].holds, 0u);
  table_->orders().Stop(kFirst);
  changed_ = [this] { EXPECT_TRUE(stopped_.empty()); };
  const int before = changes_;
  Frame(2, {{"t", "stopped"}, {"epoch", kFirst}, {"holds", kFirst}});
  EXPECT_EQ(changes_, before + 1);
  EXPECT_EQ(stopped_, std::vector<Epoch>{kFirst});
  changed_ = nullptr;
  EXPECT_EQ(table_->processes().Living()[0].holds, kFirst);
  Frame(2, {{"t", "ping"}, {"n", 2}, {"holds", kFirst}});
  EXPECT_EQ(changes_, before + 1) << "no news";
  Frame(2, {{"t", "ping"}, {"n", 3}, {"holds", 0}});
  EXPECT_EQ(table_->processes().Living()[0].holds, 0u) << "it was dropped";
}

TEST_F(WorkerTableTest, AWorkerWhoseLauncherStandsInForItStaysWhenItsProcessEnds) {
  Make(1);
  Launcher({{{"slot", 0}, {"incarnation", 1}, {"pid", 5}}});
  Worker(2, 0, 1);
  Frame(2, {{"t", "enter"}});
  table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
  Frame(1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}, {"exitCode", 137}, {"stays", true}});
  EXPECT_EQ(exits_[0].exit_code, 137);
  EXPECT_EQ(table_->processes().Living().size(), 1u);
  table_->orders().Stop(kFirst);
  EXPECT_TRUE(stopped_.empty()) << "its launcher says when the view is used no more";
  Frame(2, {{"t", "stopped"}, {"epoch", kFirst}});
  EXPECT_EQ(stopped_, std::vector<Epoch>{kFirst});
}

TEST_F(WorkerTableTest, StopIsAnsweredAtOnceWhereNobodyHasAView) {
  Make(1);
  Worker(2, 0, 1);
  table_->orders().Stop(kFirst);
  EXPECT_EQ(stopped_, std::vector<Epoch>{kFirst});
  EXPECT_EQ(TypesTo(2), Types{"welcome"});
}

TEST_F(WorkerTableTest, StopWaitsForAWorkerThatIsAwayAndTellsItWhenItReturns) {
  Make(1);
  Worker(2, 0, 1);
  table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
  table_->OnClosed(2, now_);
  table_->orders().Stop(kFirst);
  EXPECT_TRUE(stopped_.empty()) << "it may be using the view";
  Worker(3, 0, 1, kFirst);
  EXPECT_EQ(TypesTo(3), (Types{"welcome", "stop"}));
  EXPECT_EQ(LastTo(3, "welcome")["state"], "member");
  Frame(3, {{"t", "stopped"}, {"epoch", kFirst}});
  EXPECT_EQ(stopped_, std::vector<Epoch>{kFirst});
}

TEST_F(WorkerTableTest, ARestartedSidecarWaitsForWorkersOfTheStoredView) {
  Make(1);
  table_->orders().Restore(MakeView(kFirst, {{0, 1}}), now_);
  Launcher({{{"slot", 0}, {"incarnation", 1}, {"pid", 5}}});
  table_->orders().Stop(kFirst);
  EXPECT_TRUE(stopped_.empty());
}

TEST_F(WorkerTableTest, ARestartedSidecarAnswersNothingForWorkersThatItHasNotHeardOf) {
  Make(1);
  table_->orders().Restore(MakeView(kFirst, {{0, 1}}), now_);
  table_->orders().Stop(kFirst);
  table_->orders().Arm(kFirst);
  Pass(seconds(2));
  EXPECT_TRUE(stopped_.empty()) << "the worker may be using the view";
  EXPECT_TRUE(boundaries_.empty());
  Worker(2, 0, 1, kFirst);
  EXPECT_EQ(TypesTo(2), (Types{"welcome", "stop", "arm"}));
  Frame(2, {{"t", "boundary"}, {"epoch", kFirst}});
  Frame(2, {{"t", "stopped"}, {"epoch", kFirst}});
  EXPECT_EQ(boundaries_, std::vector<Epoch>{kFirst});
  EXPECT_EQ(stopped_, std::vector<Epoch>{kFirst});
}

TEST_F(WorkerTableTest, ARestartedSidecarWaitsForWorkersOfAViewThatItHasYetToLearn) {
  Make(1);
  table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
  table_->orders().Arm(kFirst);
  EXPECT_TRUE(boundaries_.empty()) << "nobody has said where the worker stands";
  Worker(10, 0, 1);
  EXPECT_EQ(TypesTo(10), (Types{"welcome", "view", "arm"}));
  Frame(10, {{"t", "boundary"}, {"epoch", kFirst}});
  EXPECT_EQ(boundaries_, std::vector<Epoch>{kFirst});
}

TEST_F(WorkerTableTest, AWorkerOfTheStoredViewThatTheLauncherDoesNotNameHasNothingToStop) {
  Make(1);
  table_->orders().Restore(MakeView(kFirst, {{0, 1}}), now_);
  table_->orders().Stop(kFirst);
  Launcher();
  EXPECT_EQ(stopped_, std::vector<Epoch>{kFirst});
}

TEST_F(WorkerTableTest, AWorkerOfTheStoredViewThatNobodyNamesIsDeadAfterItsFence) {
  Make(1);
  table_->orders().Restore(MakeView(kFirst, {{0, 1}}), now_);
  table_->orders().Stop(kFirst);
  Pass(seconds(11));
  EXPECT_TRUE(stopped_.empty());
  Pass(milliseconds(1));
  EXPECT_EQ(stopped_, std::vector<Epoch>{kFirst});
}

TEST_F(WorkerTableTest, AStandbyThatWasPromotedWhileTheSidecarWasAwayHearsItWhoeverComesFirst) {
  const json running = {{{"slot", 0}, {"incarnation", 2}, {"pid", 6}, {"standbyIncarnation", 4}}};
  Make(1);
  Launcher(running);
  Worker(3, 0, 4, 0, true);
  EXPECT_EQ(TypesTo(3), (Types{"welcome", "promoted"}));
  EXPECT_EQ(table_->processes().all().size(), 1u);
  Make(1);
  sent_.clear();
  Worker(3, 0, 4, 0, true);
  Launcher(running);
  EXPECT_EQ(TypesTo(3), (Types{"welcome", "promoted"}));
  EXPECT_EQ(LastTo(3, "promoted")["incarnation"], 2);
  ASSERT_EQ(table_->processes().all().size(), 1u) << "no standby is left over";
  Launcher(running);
  Frame(1, {{"t", "promoted"}, {"slot", 0}, {"incarnation", 2}, {"pid", 6}});
  EXPECT_EQ(TypesTo(3), (Types{"welcome", "promoted"})) << "told once";
}

TEST_F(WorkerTableTest, AWorkerThatHasStoppedAViewIsNotGivenItAgain) {
  Make(1);
  Worker(2, 0, 1);
  table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
  table_->orders().Stop(kFirst);
  Frame(2, {{"t", "stopped"}, {"epoch", kFirst}});
  EXPECT_EQ(stopped_, std::vector<Epoch>{kFirst});
  table_->OnClosed(2, now_);
  Worker(3, 0, 1);  // it had not built the view when it stopped it
  EXPECT_EQ(TypesTo(3), Types{"welcome"});
  table_->orders().Install(MakeView(kSecond, {{0, 1}}), now_);
  EXPECT_EQ(LastTo(3, "view")["view"]["epoch"], kSecond);
}

TEST_F(WorkerTableTest, APingTellsOnceThatAnOperationOfTheViewHasCompleted) {
  Make(2);
  Worker(2, 0, 1);
  Worker(3, 1, 1);
  table_->orders().Install(MakeView(kFirst, {{0, 1}, {1, 1}}), now_);
  Frame(2, {{"t", "ping"}, {"n", 1}, {"step", 0}, {"ran", 0}});
  EXPECT_TRUE(ran_.empty());
  Frame(2, {{"t", "ping"}, {"n", 2}, {"step", 1}, {"ran", kFirst}});
  Frame(3, {{"t", "ping"}, {"n", 2}, {"step", 1}, {"ran", kFirst}});
  EXPECT_EQ(ran_, std::vector<Epoch>{kFirst});
}

TEST_F(WorkerTableTest, WhoComesAfterTheJobWasGivenUpHearsWhy) {
  Make(1);
  Worker(2, 0, 1);
  table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
  table_->orders().GiveUp("all have died");
  EXPECT_EQ(LastTo(2, "error")["message"], "all have died");
  table_->OnClosed(2, now_);
  Worker(3, 0, 2);
  EXPECT_EQ(TypesTo(3), (Types{"welcome", "error"}));
}

TEST_F(WorkerTableTest, AWorkerThatAViewLeavesOutIsAJoinerAgain) {
  Make(1);
  Worker(2, 0, 1);
  Frame(2, {{"t", "enter"}});
  table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
  table_->orders().Install(MakeView(kSecond, {}), now_);
  EXPECT_EQ(TypesTo(2), (Types{"welcome", "view", "stop", "view"}))
      << "stop of the parent comes first";
  EXPECT_EQ(LastTo(2, "view")["self"], -1);
  EXPECT_EQ(table_->processes().MissingSlots(), std::vector<uint32_t>{0});
  Frame(2, {{"t", "enter"}});
  EXPECT_TRUE(table_->processes().MissingSlots().empty());
}

TEST_F(WorkerTableTest, TheBoundaryIsReachedWhenAllRanksOfThePodStandThere) {
  Make(2);
  Worker(2, 0, 1);
  Worker(3, 1, 1);
  table_->orders().Install(MakeView(kFirst, {{0, 1}, {1, 1}}), now_);
  table_->orders().Arm(kFirst);
  Frame(2, {{"t", "boundary"}, {"epoch", kFirst}});
  EXPECT_TRUE(boundaries_.empty());
  Frame(3, {{"t", "boundary"}, {"epoch", kFirst}});
  EXPECT_EQ(boundaries_, std::vector<Epoch>{kFirst});
}

TEST_F(WorkerTableTest, AClosedSocketIsADeathOnlyWhenTheProcessIsGone) {
  Make(1);
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  Worker(2, 0, 1, 0, false, child);
  table_->OnClosed(2, now_);
  EXPECT_TRUE(table_->processes().Doubtful());
  EXPECT_EQ(table_->processes().Living().size(), 1u);
  kill(child, SIGKILL);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);  // a zombie is gone too
  table_->Tick(now_);
  EXPECT_TRUE(table_->processes().Living().empty());
  waitpid(child, nullptr, 0);
}

TEST_F(WorkerTableTest, AWorkerOfAnotherPidNamespaceIsDeadAfterTheFence) {
  Make(1);
  Worker(2, 0, 1);
  table_->OnClosed(2, now_);
  Pass(seconds(10));
  EXPECT_EQ(table_->processes().Living().size(), 1u);
  Pass(milliseconds(1001));
  EXPECT_TRUE(table_->processes().Living().empty());
}

TEST_F(WorkerTableTest, ASilentWorkerIsDeadAfterTheFenceAndMayComeBack) {
  Make(1);
  Worker(2, 0, 1);
  table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
  Pass(seconds(12));
  EXPECT_TRUE(table_->processes().Living().empty());
  EXPECT_EQ(dropped_, std::vector<uint64_t>{2});
  EXPECT_TRUE(refused_.empty()) << "a refusal would end its script, and with it the job";
  Worker(3, 0, 1, kFirst);
  EXPECT_EQ(table_->processes().Living().size(), 1u);
}

TEST_F(WorkerTableTest, AWorkerThatNeverComesBackToARestartedSidecarIsKilledAfterItsFence) {
  Make(1);
  table_->orders().Restore(MakeView(kFirst, {{0, 3}}), now_);
  Launcher({{{"slot", 0}, {"incarnation", 3}, {"pid", 5}}});
  table_->orders().Stop(kFirst);
  Pass(seconds(11));
  EXPECT_TRUE(stopped_.empty());
  EXPECT_EQ(LastTo(1, "kill"), json::object());
  Pass(milliseconds(1));
  EXPECT_EQ(stopped_, std::vector<Epoch>{kFirst});
  EXPECT_EQ(LastTo(1, "kill")["incarnation"], 3);
}

TEST_F(WorkerTableTest, AFencedWorkerThatAViewStillListsIsReplacedAndNobodysFault) {
  const json running = {{{"slot", 0}, {"incarnation", 1}, {"pid", 5}}};
  for (const bool reconnects : {false, true}) {
    Make(1);
    sent_.clear();
    Launcher(running);
    Worker(2, 0, 1);
    Frame(2, {{"t", "enter"}});
    table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
    Frame(2, {{"t", "enter"}});
    EXPECT_EQ(LastTo(1, "kill"), json::object()) << "it has not built the view yet";
    Frame(2, {{"t", "installed"}, {"epoch", kFirst}});
    if (reconnects) {
      table_->OnClosed(2, now_);
      Worker(3, 0, 1, 0);
    } else {
      Frame(2, {{"t", "enter"}});
    }
    EXPECT_EQ(LastTo(1, "kill")["byUs"], true) << reconnects;
  }
}

TEST_F(WorkerTableTest, AWorkerThatANewerViewLeftOutIsNotReadyBeforeItSaysSo) {
  Make(1);
  table_->orders().Restore(MakeView(kSecond, {}), now_);
  Worker(2, 0, 1, kFirst);
  EXPECT_FALSE(table_->processes().Living()[0].ready);
  Frame(2, {{"t", "enter"}, {"state", false}});
  EXPECT_TRUE(table_->processes().Living()[0].ready);
  EXPECT_FALSE(table_->processes().Living()[0].loads);
}

TEST_F(WorkerTableTest, WhatWasSaidWhileTheSidecarStoodStillIsReadBeforeAnybodyIsCalledSilent) {
  Make(1);
  Launcher({{{"slot", 0}, {"incarnation", 1}, {"pid", 5}}});
  Worker(2, 0, 1);
  table_->Tick(now_);
  table_->Tick(now_ += seconds(60));
  EXPECT_EQ(LastTo(1, "kill"), json::object());
  Pass(milliseconds(11'250));
  EXPECT_EQ(LastTo(1, "kill")["incarnation"], 1) << "it stays silent";
}

TEST_F(WorkerTableTest, ASilentWorkerIsKilledSoThatANewOneComes) {
  Make(1);
  Launcher({{{"slot", 0}, {"incarnation", 3}, {"pid", 5}}});
  Worker(2, 0, 3);
  Pass(seconds(12));
  EXPECT_EQ(LastTo(1, "kill")["incarnation"], 3);
}

TEST_F(WorkerTableTest, AFounderThatReconnectsBeforeItsFirstViewStandsKeepsItsState) {
  Make(1);
  Worker(2, 0, 1);
  table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
  table_->OnClosed(2, now_);
  Worker(3, 0, 1, 0);
  EXPECT_EQ(LastTo(3, "welcome")["state"], "member");
  EXPECT_EQ(TypesTo(3), (Types{"welcome", "view"}));
}

TEST_F(WorkerTableTest, OnlyJoinersLeaveWhenTheRanksHaveAgreedToEnd) {
  Make(2);
  Worker(2, 0, 1);
  Worker(3, 1, 1);
  table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
  table_->orders().LeaveJoiners(kFirst, "over");
  EXPECT_EQ(TypesTo(2), (Types{"welcome", "view"}));
  EXPECT_EQ(TypesTo(3), (Types{"welcome", "view", "left"}));
}

TEST_F(WorkerTableTest, AJoinerThatComesAfterTheJobsEndLeavesToo) {
  Make(2);
  table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
  table_->orders().LeaveJoiners(kFirst, "over");
  Worker(10, 0, 1, kFirst);
  Worker(11, 1, 1);
  EXPECT_EQ(TypesTo(10).back(), "welcome") << "its ranks agree by themselves";
  EXPECT_EQ(TypesTo(11).back(), "left");
}

TEST_F(WorkerTableTest, AWorkerThatComesAfterAPodInNoViewHasLeftLeavesToo) {
  Make(1);
  table_->orders().Leave(0, "drained", LauncherPeer::End::kLeft);
  Worker(10, 0, 1);
  EXPECT_EQ(TypesTo(10).back(), "left");
}

TEST_F(WorkerTableTest, WorkersDieWithTheirLauncher) {
  Make(1);
  Launcher();
  Worker(2, 0, 1);
  table_->OnClosed(1, now_);
  table_->OnClosed(2, now_);
  Pass(milliseconds(600));
  EXPECT_TRUE(table_->processes().Living().empty());
}

TEST_F(WorkerTableTest, ASidecarThatStoodStillGivesTheLauncherTimeToComeBack) {
  Make(1);
  Launcher();
  Worker(2, 0, 1);
  table_->Tick(now_);
  table_->OnClosed(1, now_);
  table_->OnClosed(2, now_);
  now_ += milliseconds(600);
  table_->Tick(now_);
  EXPECT_EQ(table_->processes().Living().size(), 1u);
  Pass(milliseconds(600));
  EXPECT_TRUE(table_->processes().Living().empty());
}

TEST_F(WorkerTableTest, WhomTheLauncherDoesNotNameIsDead) {
  Make(1);
  Worker(2, 0, 1);
  Launcher({{{"slot", 0}, {"incarnation", 2}, {"pid", 6}}});
  ASSERT_EQ(table_->processes().Living().size(), 1u);
  EXPECT_EQ(table_->processes().Living()[0].incarnation, 2u);
}

TEST_F(WorkerTableTest, AStandbyIsNoWorkerUntilItIsPromoted) {
  Make(1);
  Launcher({{{"slot", 0}, {"incarnation", 1}, {"pid", 5}},
            {{"slot", -1}, {"incarnation", 1}, {"pid", 6}, {"standby", true}}});
  Worker(2, 0, 1);
  Worker(3, 0, 1, 0, true);
  EXPECT_EQ(LastTo(3, "welcome")["state"], "standby");
  EXPECT_EQ(table_->processes().Living().size(), 1u);
  Frame(1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}, {"exitCode", 137}});
  Frame(1, {{"t", "promoted"}, {"slot", 0}, {"incarnation", 2}, {"pid", 6}});
  EXPECT_EQ(LastTo(3, "promoted")["incarnation"], 2);
  ASSERT_EQ(table_->processes().Living().size(), 1u);
  EXPECT_EQ(table_->processes().Living()[0].incarnation, 2u);
}

TEST_F(WorkerTableTest, AStandbyThatIsPromotedBeforeItSaysHelloHearsBoth) {
  Make(1);
  Launcher({{{"slot", -1}, {"incarnation", 4}, {"pid", 6}, {"standby", true}}});
  Frame(1, {{"t", "promoted"}, {"slot", 0}, {"incarnation", 2}, {"pid", 6}});
  Worker(3, 0, 4, 0, true);
  EXPECT_EQ(TypesTo(3), (Types{"welcome", "promoted"}));
}

TEST_F(WorkerTableTest, RefusesSlotsThatDoNotExistAndFormerIncarnations) {
  Make(1);
  Worker(2, 1, 1);
  Worker(3, -5, 1);
  Worker(4, 0, 2);
  Worker(5, 0, 1);
  EXPECT_EQ(refused_.size(), 3u);
  table_->OnHello(6, true, {{"slots", 3}}, 0, now_);
  EXPECT_EQ(refused_.back(), "launcher has 3 slots, this pod has 1");
}

TEST_F(WorkerTableTest, FramesOfAnyShapeAreHarmless) {
  Make(1);
  Launcher({1, "x", json::object(), nullptr});
  Worker(2, 0, 1);
  for (const char* type : {"started", "exited", "promoted", "term", "nonsense"})
    Frame(1, {{"t", type}, {"slot", "x"}});
  for (const char* type : {"ping", "enter", "stopped", "installed", "boundary", "suspect", "broken",
                           "rebuilt", "resting", "woken", "finished", "bye"}) {
    Frame(2, {{"t", type}, {"epoch", -1}, {"values", {1, 2}}, {"seconds", "x"}, {"rank", {}}});
  }
}

TEST_F(WorkerTableTest, AWorkerThatRestsEndsTheJobAsItsProcessEndsWell) {
  const auto ends = [this](const json& how, std::vector<const char*> said) {
    Make(1);
    finished_.clear();
    Launcher(json::array({{{"slot", 0}, {"incarnation", 1}, {"pid", 4}}}));
    Worker(2, 0, 1);
    table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
    for (const char* type : said) Frame(2, {{"t", type}, {"epoch", kFirst}});
    table_->orders().Install(MakeView(kSecond, {{0, 1}}), now_);  // it has not heard of this yet
    EXPECT_TRUE(finished_.empty());
    table_->OnClosed(2, now_);
    json exited = {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}};
    exited.update(how);
    Frame(1, exited);
    return finished_;
  };
  EXPECT_EQ(ends({{"exitCode", 0}}, {"resting"}), std::vector<Epoch>{kSecond});
  EXPECT_EQ(ends({{"exitCode", 0}}, {"resting", "woken", "resting"}), std::vector<Epoch>{kSecond});
  EXPECT_TRUE(ends({{"exitCode", 0}}, {"resting", "woken"}).empty()) << "it had begun again";
  EXPECT_TRUE(ends({{"exitCode", 0}}, {}).empty());
  EXPECT_TRUE(ends({{"exitCode", 1}}, {"resting"}).empty());
  EXPECT_TRUE(ends({{"exitCode", 137}, {"signal", 9}}, {"resting"}).empty());
}

// What it said meanwhile may be lost with the connection.
TEST_F(WorkerTableTest, WhoConnectsAgainRestsOnlyIfItSaysSoAgain) {
  for (const bool rests : {false, true}) {
    Make(1);
    finished_.clear();
    Launcher(json::array({{{"slot", 0}, {"incarnation", 1}, {"pid", 4}}}));
    Worker(2, 0, 1);
    table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
    Frame(2, {{"t", "resting"}, {"epoch", kFirst}});
    table_->OnClosed(2, now_);
    Worker(3, 0, 1, kFirst);
    if (rests) Frame(3, {{"t", "resting"}, {"epoch", kFirst}});
    Frame(1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}, {"exitCode", 0}});
    EXPECT_EQ(finished_, rests ? std::vector<Epoch>{kFirst} : std::vector<Epoch>{});
  }
}

TEST_F(WorkerTableTest, AWorkerThatRestsAndSaysThatItIsThroughIsSoInTheNewestView) {
  Make(1);
  Worker(2, 0, 1);
  table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
  Frame(2, {{"t", "resting"}, {"epoch", kFirst}});
  table_->orders().Install(MakeView(kSecond, {{0, 1}}), now_);
  Frame(2, {{"t", "finished"}, {"epoch", kFirst}});
  EXPECT_EQ(finished_, std::vector<Epoch>{kSecond});
}

TEST_F(WorkerTableTest, WhoWasDroppedWhileItRestedDoesNotEndTheJobOfTheOthers) {
  Make(1);
  Launcher(json::array({{{"slot", 0}, {"incarnation", 1}, {"pid", 4}}}));
  Worker(2, 0, 1);
  table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
  Frame(2, {{"t", "resting"}, {"epoch", kFirst}});
  table_->orders().Install(MakeView(kSecond, {}), now_);
  Frame(1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}, {"exitCode", 0}});
  EXPECT_TRUE(finished_.empty());
}

TEST_F(WorkerTableTest, HowAWorkerEndedThatRestedIsTheLaunchersWord) {
  Make(1);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  Launcher(json::array({{{"slot", 0}, {"incarnation", 1}, {"pid", child}}}));
  Worker(2, 0, 1, 0, false, child);
  table_->orders().Install(MakeView(kFirst, {{0, 1}}), now_);
  Frame(2, {{"t", "resting"}, {"epoch", kFirst}});
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  table_->OnClosed(2, now_);
  EXPECT_EQ(table_->processes().Living().size(), 1u) << "a closed socket does not tell it";
  Frame(1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}, {"exitCode", 0}});
  EXPECT_EQ(finished_, std::vector<Epoch>{kFirst});
  EXPECT_TRUE(table_->processes().Living().empty());
  waitpid(child, nullptr, 0);
}

TEST_F(WorkerTableTest, LeavingTellsTheLauncherBeforeItsWorkersEnd) {
  Make(1);
  Launcher();
  Worker(2, 0, 1);
  table_->orders().Leave(kFirst, "drained", LauncherPeer::End::kLeft);
  ASSERT_EQ(sent_.size(), 3u);
  EXPECT_EQ(sent_[1].second["t"], "finish");
  EXPECT_EQ(sent_[1].second["left"], true);
  EXPECT_EQ(sent_[1].second["terminated"], false);
  EXPECT_EQ(sent_[2].second["t"], "left");
}

}  // namespace
}  // namespace ringmaster::app
