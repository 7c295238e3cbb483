// The parts of the agent that talk to the membership, each by itself.
#include "sidecar/app/testing/agent_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/logging/log.h"
#include "common/membership/view_changes.h"
#include "common/membership/view_json.h"
#include "sidecar/app/departure.h"
#include "sidecar/app/membership_loop.h"
#include "sidecar/app/operator_orders.h"
#include "sidecar/app/operator_reports.h"
#include "sidecar/app/peer_monitor.h"
#include "sidecar/app/rebuild_tracker.h"
#include "sidecar/app/status_document.h"
#include "sidecar/app/training_history.h"
#include "sidecar/app/worker_monitor.h"

namespace ringmaster::app {
namespace {

using membership::MakeEpoch;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing_parts::AgentParts;

const Epoch kFirst = MakeEpoch(1, 1);

// ---- MembershipLoop

TEST(MembershipLoopTest, AllActionsOfAnEventComeBeforeTheNextEvent) {
  std::vector<std::string> log;
  MembershipLoop* loop = nullptr;
  MembershipHooks hooks;
  hooks.now = [] { return SteadyTime(seconds(1)); };
  hooks.persist = [&](const membership::PersistentState&) {
    log.emplace_back("persist");
    return tl::expected<void, std::string>();
  };
  hooks.run = [&](const membership::Action& action) {
    if (!std::holds_alternative<membership::InstallView>(action)) return;
    log.emplace_back("install");
    loop->Feed(membership::Tick{});
  };
  hooks.stepped = [&] { log.emplace_back("stepped"); };
  hooks.settled = [&] { log.emplace_back("settled"); };
  membership::Config config;
  config.self.uid = "u0";
  MembershipLoop made(config, {.incarnation = 1}, hooks);
  loop = &made;
  made.Feed(membership::ViewDecided{AgentParts::FirstView()});
  EXPECT_EQ(log, (std::vector<std::string>{"persist", "install", "stepped", "stepped", "settled"}));
  EXPECT_EQ(made.epoch(), kFirst);
  made.End();
  made.Feed(membership::Tick{});
  EXPECT_EQ(log.size(), 5u);
}

// A loop whose disk is full for as long as a test likes.
class FullDiskTest : public ::testing::Test {
 protected:
  FullDiskTest() {
    MembershipHooks hooks;
    hooks.now = [this] { return now_; };
    hooks.persist = [this](const membership::PersistentState&) -> tl::expected<void, std::string> {
      if (full_) return tl::unexpected(std::string("no space"));
      log_.emplace_back("persist");
      return {};
    };
    hooks.run = [this](const membership::Action& action) {
      if (std::holds_alternative<membership::InstallView>(action)) log_.emplace_back("install");
    };
    hooks.stepped = [this] { log_.emplace_back("stepped"); };
    hooks.settled = [] {};
    membership::Config config;
    config.self.uid = "u0";
    loop_.emplace(config, membership::PersistentState{.incarnation = 1}, hooks);
  }

  SteadyTime now_{seconds(1)};
  bool full_ = true;
  std::vector<std::string> log_;
  std::optional<MembershipLoop> loop_;
};

TEST_F(FullDiskTest, NothingHappensUntilTheStateIsStoredAndThenAllInItsOrder) {
  loop_->Feed(membership::ViewDecided{AgentParts::FirstView()});
  EXPECT_TRUE(loop_->waits());
  now_ += milliseconds(500);
  loop_->Feed(membership::Tick{});
  loop_->Feed(membership::Started{});
  EXPECT_THAT(log_, testing::IsEmpty());
  full_ = false;
  loop_->Feed(membership::Tick{});
  // Of the view, and of `Started`; a tick that found the disk full has nothing to say later.
  EXPECT_EQ(log_,
            (std::vector<std::string>{"persist", "install", "stepped", "install", "stepped"}));
  EXPECT_FALSE(loop_->waits());
  EXPECT_FALSE(loop_->done());
  loop_->Feed(membership::Tick{});
  EXPECT_EQ(log_.size(), 6u);
}

TEST_F(FullDiskTest, ItEndsWhereTheStateCanNotBeStoredForLong) {
  loop_->Feed(membership::ViewDecided{AgentParts::FirstView()});
  EXPECT_FALSE(loop_->done());
  now_ += MembershipLoop::kStorePatience;
  loop_->Feed(membership::Tick{});
  EXPECT_TRUE(loop_->done());
  EXPECT_EQ(loop_->exit_code(), 1);
  EXPECT_THAT(log_, testing::Not(testing::Contains("install")));
}

// ---- OperatorReports

TEST(OperatorReportsTest, ReadinessIsReportedWhenItChanges) {
  AgentParts parts;
  membership::Candidate candidate;
  candidate.pod.uid = "u0";
  parts.reports.Readiness(candidate, {0});
  parts.reports.Readiness(candidate, {0});
  EXPECT_EQ(parts.log, std::vector<std::string>{"readiness"});
  parts.reports.ForgetReadiness();
  parts.reports.Readiness(candidate, {0});
  EXPECT_EQ(parts.log.size(), 2u);
}

TEST(OperatorReportsTest, ThatThePodCanNotTrainIsReportedWhenItLasts) {
  AgentParts parts;
  parts.reports.Health(true, parts.now);
  parts.reports.Health(false, parts.now);
  parts.reports.Health(false, parts.now + milliseconds(999));
  EXPECT_EQ(parts.log, std::vector<std::string>{"able"});
  parts.reports.Health(false, parts.now + seconds(1));
  EXPECT_EQ(parts.log.back(), "unable");
}

// ---- TrainingHistory

TEST(TrainingHistoryTest, AnewStartsTheStepsAndALossTakesThemBack) {
  health::Metrics metrics{"default", "job", "p0"};
  TrainingHistory history(1, &metrics);
  const SteadyTime now(seconds(10));
  const ViewPtr first = AgentParts::FirstView();
  EXPECT_EQ(history.Installed(nullptr, *first, now, 1), nullptr);
  WorkerProcess worker(0, 1);
  worker.views.Installed(kFirst);
  worker.figures.AtStep(12);
  history.Remember({worker}, first);
  membership::View second = *first;
  second.epoch = MakeEpoch(1, 2);
  second.reason = membership::Reason::kPodLost;
  ASSERT_NE(history.Installed(first.get(), second, now, 2), nullptr);
  const job::Rebuild* rebuild =
      history.Rebuilt({.epoch = second.epoch, .seconds = {{"redo", 0.1}}, .steps_resumed = 10});
  ASSERT_NE(rebuild, nullptr);
  EXPECT_EQ(rebuild->steps_lost, 2);
  EXPECT_EQ(history.progress().Step({}), 10u);
  EXPECT_EQ(history.Rebuilt({.epoch = 99}), nullptr);
  history.Installed(&second, *first, now, 3);
  EXPECT_EQ(history.progress().Step({}), 0u) << "its reason is a bootstrap";
}

// ---- Departure

TEST(DepartureTest, APodInNoViewLeavesAtOnce) {
  AgentParts parts;
  parts.departure.Drain({"u1"}, "Deleted", {}, {});
  EXPECT_FALSE(parts.departure.draining()) << "another pod";
  parts.departure.Drain({"u0"}, "Deleted", {}, {});
  EXPECT_TRUE(parts.departure.draining());
  EXPECT_TRUE(parts.departure.left());
}

TEST(DepartureTest, WhereAllPodsLeaveTheyGoAtTheNextBoundary) {
  AgentParts parts;
  parts.StartTraining();
  parts.departure.Drain({"u0"}, "Deleted", {}, {});
  EXPECT_FALSE(parts.Logged("arm to 2"));
  parts.departure.Drain({"u0", "u1", "u2"}, "Deleted", {}, {});
  EXPECT_TRUE(parts.Logged("arm to 2"));
  parts.departure.BoundaryReached(kFirst - 1);
  EXPECT_FALSE(parts.departure.left());
  parts.departure.BoundaryReached(kFirst);
  EXPECT_TRUE(parts.departure.left());
  EXPECT_TRUE(parts.Logged("left to 2"));
}

// A view of this pod alone, which coordinates it.
ViewPtr ViewOfThisPod() {
  membership::View view = *AgentParts::FirstView();
  view.epoch = MakeEpoch(1, 2);
  view.parent = kFirst;
  view.coordinator = "u0";
  view.pods.resize(1);
  view.ranks.resize(1);
  return std::make_shared<const membership::View>(view);
}

TEST(DepartureTest, WhereTheViewIsLeftToPodsThatLeaveTheyGoWithoutAFurtherDrain) {
  AgentParts parts;
  parts.StartTraining();
  parts.departure.Drain({"u0"}, "Deleted", {}, {});
  parts.membership.Feed(membership::ViewDecided{ViewOfThisPod()});
  parts.departure.BoundaryReached(kFirst);
  parts.departure.CheckEverybodyLeaves();
  EXPECT_TRUE(parts.Logged("arm to 2"));
  EXPECT_FALSE(parts.departure.left());
  parts.departure.BoundaryReached(MakeEpoch(1, 2));
  EXPECT_TRUE(parts.departure.left());
}

TEST(DepartureTest, TheLastPodThatLeavesFirstGivesItsStateToWhoWaits) {
  AgentParts parts;
  parts.StartTraining();
  parts.membership.Feed(membership::ViewDecided{ViewOfThisPod()});
  membership::Message join;
  join.kind = membership::MessageKind::kJoin;
  join.from = join.candidate.pod.uid = "u7";
  join.view = MakeEpoch(1, 2);
  join.candidate.pod.address = "10.0.0.1:107";
  join.candidate.workers.push_back({.slot = 0, .incarnation = 1, .ready = true, .loads = true});
  parts.membership.Feed(membership::MessageReceived{join, join.candidate.pod.address});
  ASSERT_TRUE(parts.membership.member().admits());
  parts.departure.Drain({"u0"}, "Deleted", {}, {});
  parts.departure.BoundaryReached(MakeEpoch(1, 2));
  EXPECT_FALSE(parts.departure.left());
  parts.now += std::chrono::minutes(1);  // it is not heard of any more
  parts.membership.Feed(membership::Tick{});
  parts.departure.CheckEverybodyLeaves();
  EXPECT_TRUE(parts.departure.left());
}

TEST(DepartureTest, FinishesOnceAndDrainsNoMore) {
  AgentParts parts;
  parts.StartTraining();
  EXPECT_TRUE(parts.departure.FinishedByRanks(kFirst));
  EXPECT_FALSE(parts.departure.FinishedByRanks(kFirst));
  EXPECT_TRUE(parts.Logged("finish to 1"));
  parts.departure.Drain({"u0"}, "Deleted", {}, {});
  EXPECT_FALSE(parts.departure.draining());
}

TEST(DepartureTest, TerminatingEndsTheLoopWhenNoWorkerIsLeft) {
  AgentParts parts;
  parts.departure.Terminate();
  EXPECT_FALSE(parts.membership.done());
  parts.now += milliseconds(300);
  parts.departure.CheckTermination();
  EXPECT_TRUE(parts.membership.done());
}

// Of such a leave the launcher makes no success: it has got no signal itself.
TEST(DepartureTest, TheLauncherHearsWhetherThePodLeavesBecauseTheSidecarIsTerminated) {
  AgentParts drained;
  drained.StartTraining();
  drained.departure.Drain({"u0"}, "Deleted", {}, {});
  drained.departure.LeaveByPlan();
  EXPECT_EQ(drained.to_launcher["t"], "finish");
  EXPECT_EQ(drained.to_launcher["terminated"], false);

  AgentParts terminated;
  terminated.StartTraining();
  terminated.departure.Terminate();
  terminated.departure.LeaveByPlan();
  EXPECT_EQ(terminated.to_launcher["t"], "finish");
  EXPECT_EQ(terminated.to_launcher["left"], true);
  EXPECT_EQ(terminated.to_launcher["terminated"], true);
}

TEST(DepartureTest, AWorkerThatOutlastsTheGraceOfTheSidecarIsStoppedAsTerminated) {
  AgentParts parts;
  parts.StartTraining();
  parts.departure.Terminate();
  parts.now += seconds(29);
  parts.departure.CheckTermination();
  EXPECT_EQ(parts.to_launcher["t"], "stop");
  EXPECT_EQ(parts.to_launcher["terminated"], true);
}

// ---- PeerMonitor

TEST(PeerMonitorTest, APodIsLostWhenItsSidecarAndItsRankAreGone) {
  AgentParts parts;
  parts.StartTraining();
  parts.peers.OnUnreachable("u2", "reset");
  EXPECT_FALSE(parts.Logged("suspect to u1"));
  parts.unreachable = "u2";
  parts.peers.OnWorkerSuspects(kFirst, 2, "closed");
  EXPECT_TRUE(parts.Logged("suspect to u1"));
}

TEST(PeerMonitorTest, ASuspicionOfALivingPodBringsTheSameMembersAnewWhenItLasts) {
  AgentParts parts;
  parts.StartTraining();
  parts.peers.OnWorkerSuspects(kFirst, 2, "closed");
  parts.peers.CheckSuspicions();
  parts.now += milliseconds(1499);
  parts.peers.CheckSuspicions();
  EXPECT_FALSE(parts.membership.member().NextDeadline()) << "nothing is wrong yet";
  parts.now += milliseconds(1);
  parts.peers.CheckSuspicions();
  EXPECT_TRUE(parts.Logged("suspect to u1")) << "the coordinator's turn";
}

// The text of a view without u2, as u1 sends it to members that have its parent.
std::string ChangeAfter(const ViewPtr& parent) {
  membership::View view = *parent;
  view.parent = view.epoch++;
  view.reason = membership::Reason::kPodLost;
  view.pods.pop_back();
  view.ranks.pop_back();
  membership::Message message;
  message.value = std::make_shared<const membership::View>(std::move(view));
  membership::ViewChanges sender;
  sender.Know(parent);
  return sender.Encode(message, "u0");
}

// As sidecars of this version make it.
ViewPtr FirstViewOfReaders() {
  membership::View view = *AgentParts::FirstView();
  for (membership::Pod& pod : view.pods) pod.reads_changes = true;
  return std::make_shared<const membership::View>(std::move(view));
}

membership::Message DecidedBy(const std::string& pod, Epoch epoch) {
  membership::Message message;
  message.kind = membership::MessageKind::kDecided;
  message.from = pod;
  message.incarnation = 1;
  message.view = epoch;
  return message;
}

TEST(PeerMonitorTest, AViewThatComesAsAChangeIsTheNextView) {
  AgentParts parts;
  parts.StartTraining();
  const std::string change = ChangeAfter(FirstViewOfReaders());
  ASSERT_FALSE(change.empty());
  parts.peers.OnMessage(membership::EncodeMessage(DecidedBy("u1", kFirst), change), "u1", "");
  EXPECT_EQ(parts.membership.epoch(), kFirst + 1);
  EXPECT_EQ(parts.membership.member().current()->pods.size(), 2u);
}

TEST(PeerMonitorTest, WhoCanNotReadAChangeAsksForTheView) {
  AgentParts parts;
  parts.StartTraining();
  membership::View later = *FirstViewOfReaders();
  later.epoch += 5;
  const std::string change = ChangeAfter(std::make_shared<const membership::View>(later));
  parts.peers.OnMessage(membership::EncodeMessage(DecidedBy("u1", kFirst + 5), change), "u1", "");
  EXPECT_EQ(parts.membership.epoch(), kFirst);
  EXPECT_TRUE(parts.Logged("fetch to u1"));
}

TEST(PeerMonitorTest, WhatIsToldOfAPodIsBelievedWhenThePodsAroundItAreKnown) {
  AgentParts parts;
  parts.StartTraining();
  membership::View view = *AgentParts::FirstView();
  view.epoch = kFirst + 1;
  view.coordinator = "u0";
  parts.membership.Feed(
      membership::ViewDecided{std::make_shared<const membership::View>(std::move(view))});
  parts.log.clear();
  membership::Message accusation;
  accusation.kind = membership::MessageKind::kSuspect;
  accusation.from = "u2";
  accusation.incarnation = 1;
  accusation.view = kFirst + 1;
  accusation.pods = {"u1"};
  const auto said = [&](int times) {
    testing::internal::CaptureStdout();
    for (int i = 0; i < times; ++i) {
      parts.peers.OnMessage(membership::EncodeMessage(accusation), "u2", "10.0.0.1:102");
    }
    logging::Flush();
    return testing::internal::GetCapturedStdout();
  };
  parts.unsettled = {"u9"};
  EXPECT_THAT(said(1), testing::Not(testing::HasSubstr("accused")));
  EXPECT_FALSE(parts.membership.member().changing());
  parts.unsettled = {"u1"};
  accusation.pods = {"not in the view"};
  EXPECT_THAT(said(1), testing::Not(testing::HasSubstr("accused")));
  EXPECT_FALSE(parts.membership.member().changing());
  accusation.pods = {"not in the view", "u1"};
  const std::string log = said(2);
  EXPECT_TRUE(parts.membership.member().changing());
  const size_t at = log.find("pod accused pod=u1 by=u2");
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_EQ(log.find("accused", at + 10), std::string::npos) << "said once";
}

// ---- OperatorOrders

TEST(OperatorOrdersTest, HasLookedShortlyAfterItsTargetOrLongAfterItAccepted) {
  AgentParts parts;
  OperatorOrders accepted(parts.clock, &parts.membership, &parts.table, &parts.departure,
                          &parts.reports);
  OperatorOrders target = accepted;
  accepted.OnAccepted();
  target.OnTarget({}, 0);
  parts.now += milliseconds(100);
  EXPECT_TRUE(target.HasLooked());
  EXPECT_FALSE(accepted.HasLooked());
  parts.now += seconds(3);
  EXPECT_TRUE(accepted.HasLooked());
}

TEST(OperatorOrdersTest, HearsOfHealthAgainWhenItConnects) {
  AgentParts parts;
  OperatorOrders orders(parts.clock, &parts.membership, &parts.table, &parts.departure,
                        &parts.reports);
  parts.StartTraining();
  for (int i = 0; i < 2; ++i) {
    orders.OnConnection(true);
    EXPECT_TRUE(orders.connected());
    orders.OnConnection(false);
  }
  EXPECT_EQ(parts.log, (std::vector<std::string>{"able", "able"}));
}

TEST(OperatorOrdersTest, FreshWorkersAreOfALaterLineageOnly) {
  AgentParts parts;
  OperatorOrders orders(parts.clock, &parts.membership, &parts.table, &parts.departure,
                        &parts.reports);
  parts.StartTraining();
  parts.table.OnFrame(2, {{"t", "installed"}, {"epoch", kFirst}}, parts.now);
  orders.OnRecover(1, true);
  EXPECT_FALSE(parts.Logged("kill to 1"));
  orders.OnRecover(2, true);
  EXPECT_TRUE(parts.Logged("kill to 1"));
}

// ---- WorkerMonitor

class WorkerMonitorTest : public testing::Test {
 protected:
  WorkerMonitorTest() { monitor_.Start(/*with_view=*/true); }
  AgentParts parts_;
  WorkerMonitor monitor_{"u0",
                         parts_.clock,
                         {.membership = &parts_.membership,
                          .table = &parts_.table,
                          .departure = &parts_.departure,
                          .peers = &parts_.peers,
                          .reports = &parts_.reports,
                          .history = &parts_.history,
                          .metrics = &parts_.metrics}};
};

TEST_F(WorkerMonitorTest, AnExitWhileThePodLeavesIsOurDoing) {
  monitor_.OnExited({.slot = -1, .standby = true});
  EXPECT_TRUE(monitor_.exits().empty());
  monitor_.OnExited({.slot = 0, .exit_code = 1, .incarnation = 1});
  EXPECT_EQ(parts_.log.back(), "exit");
  parts_.departure.Drain({"u0"}, "Deleted", {}, {});
  for (int i = 0; i < 40; ++i) monitor_.OnExited({.slot = 0, .exit_code = 1, .incarnation = 1});
  EXPECT_EQ(parts_.log.back(), "exit by us");
  EXPECT_EQ(monitor_.exits().size(), 32u);
  EXPECT_FALSE(monitor_.exits().back().by_us) << "/status shows what the launcher said";
}

TEST_F(WorkerMonitorTest, ReportsTheEndOfTheJobOnce) {
  monitor_.OnFinished(kFirst);
  monitor_.OnFinished(kFirst);
  EXPECT_EQ(parts_.log, std::vector<std::string>{"finished"});
}

// ---- StatusDocument

TEST(StatusDocumentTest, ShowsTheStateOfThePodAndItsWorkers) {
  AgentParts parts;
  SidecarOptions options;
  options.pod_uid = "u0";
  options.version = "1.2.3";
  std::deque<job::WorkerExit> exits = {{.slot = 0, .exit_code = 9, .incarnation = 1}};
  StatusInput input{.options = options,
                    .member = parts.membership.member(),
                    .processes = parts.table.processes(),
                    .gpus = parts.table.gpus(),
                    .history = parts.history,
                    .exits = exits,
                    .installed = nullptr};
  json status = StatusDocument(input);
  EXPECT_EQ(status["state"], "Waiting");
  EXPECT_EQ(status["version"], "1.2.3");
  EXPECT_EQ(status["historySince"], 0);
  EXPECT_TRUE(status["view"].is_null());
  EXPECT_EQ(status["exits"][0]["exitCode"], 9);
  parts.StartTraining();
  input.installed = parts.membership.installed();
  status = StatusDocument(input);
  EXPECT_EQ(status["state"], "Rebuilding");
  EXPECT_EQ(status["workers"][0]["state"], "rebuilding");
  EXPECT_EQ(status["workers"][0]["rank"], 0);
  parts.table.OnFrame(2, {{"t", "installed"}, {"epoch", kFirst}}, parts.now);
  EXPECT_EQ(StatusDocument(input)["state"], "Training");
  input.leaving = true;
  EXPECT_EQ(StatusDocument(input)["state"], "Draining");
  input.finishing = true;
  EXPECT_EQ(StatusDocument(input)["state"], "Finishing");
}

TEST(RebuildTrackerTest, DetectIsFromTheDeathThatTheLauncherSawToTheFirstNoticeOfIt) {
  const SteadyTime start(seconds(100));
  membership::View before, after;
  before.epoch = MakeEpoch(1, 1);
  after.epoch = MakeEpoch(1, 2);
  health::RebuildLog log;
  RebuildTracker tracker(&log);
  const auto detect = [&](SteadyTime died, SteadyTime noticed) {
    tracker.Noticed(noticed, 1);
    tracker.Died(died, noticed);
    return tracker.Installed(&before, after, 1, noticed + seconds(1), 2)->seconds["detect"];
  };
  EXPECT_DOUBLE_EQ(detect(start, start + milliseconds(250)), 0.25);
  EXPECT_EQ(detect(start, start + seconds(3600)), 0) << "the clock of another machine";
  EXPECT_EQ(detect(start + seconds(1), start), 0) << "the same";
  // A death belongs to the next view only.
  tracker.Noticed(start + seconds(2), 1);
  EXPECT_EQ(tracker.Installed(&before, after, 1, start + seconds(3), 2)->seconds.count("detect"),
            0u);
}

}  // namespace
}  // namespace ringmaster::app
