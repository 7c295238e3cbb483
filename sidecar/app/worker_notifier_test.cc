#include "sidecar/app/worker_notifier.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/job/worker_exit.h"

namespace ringmaster::app {
namespace {

using membership::MakeEpoch;
using nlohmann::json;

const Epoch kEpoch = MakeEpoch(1, 1);

class WorkerNotifierTest : public testing::Test {
 protected:
  static ViewPtr ViewOf(Epoch epoch, uint64_t incarnation) {
    membership::View view;
    view.epoch = epoch;
    view.parent = epoch - 1;
    view.pods.push_back({.uid = "u0", .name = "p0"});
    view.ranks.push_back({.pod = 0, .slot = 0, .incarnation = incarnation});
    return std::make_shared<const membership::View>(view);
  }
  static WorkerProcess Connected(uint64_t connection) {
    WorkerProcess worker(0, 1);
    worker.connection.Open(connection, /*says_standby=*/false, /*keeps_timeline=*/false);
    return worker;
  }
  std::vector<std::string> Types() const {
    std::vector<std::string> types;
    for (const json& frame : sent_) types.push_back(frame["t"]);
    return types;
  }

  std::vector<json> sent_;
  int joiners_again_ = 0;
  WorkerNotifier notifier_{{.job = "job", .pod = "p0", .pod_uid = "u0", .slots = 1},
                           [this](uint64_t, const json& frame) { sent_.push_back(frame); },
                           [this] { ++joiners_again_; }};
  WorkerBarrier asked_;
  WorkerProcess worker_ = Connected(2);
};

using Frames = std::vector<std::string>;

TEST_F(WorkerNotifierTest, WelcomesOnceItIsSettledWhetherTheJobStarts) {
  notifier_.Welcome(&worker_, asked_);
  EXPECT_FALSE(worker_.connection.welcomed());
  EXPECT_TRUE(notifier_.Settle());
  EXPECT_FALSE(notifier_.Settle());
  notifier_.Welcome(&worker_, asked_);
  EXPECT_EQ(sent_.at(0)["state"], "bootstrap");
}

TEST_F(WorkerNotifierTest, TheRingsKeyIsInTheWelcomeAndNowhereElse) {
  WorkerNotifier keyed(
      {.job = "job", .pod = "p0", .pod_uid = "u0", .ring_key = "secret"},
      [this](uint64_t, const json& frame) { sent_.push_back(frame); }, [] {});
  keyed.Install(ViewOf(kEpoch, 1));
  asked_.Arm(kEpoch);
  keyed.Welcome(&worker_, asked_);
  ASSERT_EQ(Types(), (Frames{"welcome", "view", "arm"}));
  EXPECT_EQ(sent_[0]["ringKey"], "secret");
  EXPECT_EQ(sent_[1].dump().find("secret"), std::string::npos);
  EXPECT_EQ(sent_[2].dump().find("secret"), std::string::npos);
  sent_.clear();
  WorkerProcess other = Connected(3);
  notifier_.Install(ViewOf(kEpoch, 1));
  notifier_.Welcome(&other, asked_);
  EXPECT_FALSE(sent_[0].contains("ringKey")) << "a job without a key says nothing of one";
}

// It has missed the view that went on without it, and its sidecar has lost its file.
TEST_F(WorkerNotifierTest, WhoComesIntoAViewAnewHearsSoThoughItWasWelcomedBeforeThatWasKnown) {
  notifier_.Settle();
  worker_.views.Reconnected(/*epoch=*/MakeEpoch(1, 1), /*given=*/0);
  notifier_.Welcome(&worker_, asked_);
  EXPECT_EQ(sent_.at(0)["state"], "bootstrap");
  membership::View view = *ViewOf(MakeEpoch(1, 3), 1);
  view.ranks[0].joined = true;
  notifier_.Install(std::make_shared<const membership::View>(view));
  sent_.clear();
  notifier_.SendView(&worker_);
  ASSERT_EQ(Types(), (Frames{"welcome", "stop", "view"}));
  EXPECT_EQ(sent_[0]["state"], "joining");
}

TEST_F(WorkerNotifierTest, AStandbyThatWasPromotedLongAgoComesAnewAsAJoiner) {
  notifier_.Settle();
  worker_.connection.Open(2, /*says_standby=*/true, /*keeps_timeline=*/false);
  worker_.views.Sent(MakeEpoch(1, 1));
  membership::View view = *ViewOf(MakeEpoch(1, 3), 1);
  view.ranks[0].joined = true;
  notifier_.Install(std::make_shared<const membership::View>(view));
  notifier_.SendView(&worker_);
  ASSERT_EQ(Types(), (Frames{"welcome", "stop", "view"}));
  EXPECT_EQ(sent_[0]["state"], "joining");
}

TEST_F(WorkerNotifierTest, AMemberHearsItsViewAndWhatIsAsked) {
  notifier_.Install(ViewOf(kEpoch, 1));
  asked_.Arm(kEpoch);
  notifier_.Welcome(&worker_, asked_);
  EXPECT_EQ(Types(), (Frames{"welcome", "view", "arm"}));
  EXPECT_EQ(sent_[0]["state"], "member");
  notifier_.SendView(&worker_);
  EXPECT_EQ(sent_.size(), 3u) << "it has this view";
}

TEST_F(WorkerNotifierTest, AWorkerThatAViewLeavesOutIsAJoinerAgain) {
  notifier_.Install(ViewOf(kEpoch, 1));
  notifier_.Welcome(&worker_, asked_);
  worker_.stage.Enter(true);
  notifier_.Install(ViewOf(kEpoch + 1, 9));
  notifier_.SendView(&worker_);
  EXPECT_EQ(Types(), (Frames{"welcome", "view", "stop", "view"}));
  EXPECT_EQ(joiners_again_, 1);
  EXPECT_FALSE(worker_.stage.ready());
}

TEST_F(WorkerNotifierTest, OneThatWasToBeginTheJobHearsThatTheJobHasBegunWithoutIt) {
  notifier_.Settle();
  notifier_.Welcome(&worker_, asked_);
  worker_.stage.Enter(true);
  notifier_.Restore(ViewOf(kEpoch, 9));
  notifier_.SendView(&worker_);
  notifier_.SendView(&worker_);
  ASSERT_EQ(Types(), (Frames{"welcome", "view"})) << "once: then it is a joiner like any other";
  EXPECT_EQ(sent_[1]["self"], -1);
  EXPECT_FALSE(worker_.stage.ready());
}

// What it holds is not the job's: a view has gone on without it, and it may not have heard so.
TEST_F(WorkerNotifierTest, AWorkerThatAViewLetsInAndThatWasNotInTheOneBeforeIsAJoiner) {
  auto view = std::make_shared<membership::View>(*ViewOf(kEpoch + 2, 1));
  view->ranks[0].joined = true;
  notifier_.Install(view);
  worker_.views.Sent(kEpoch);
  notifier_.Welcome(&worker_, asked_);
  EXPECT_EQ(sent_[0]["state"], "joining");
  EXPECT_EQ(sent_.back()["self"], 0) << "and in the view all the same";
  worker_.views.Sent(kEpoch + 1);
  notifier_.Welcome(&worker_, asked_);
  ASSERT_EQ(sent_.back()["t"], "view");
  EXPECT_EQ(sent_[sent_.size() - 2]["state"], "member") << "it was in the view before this one";
}

TEST_F(WorkerNotifierTest, WorkersThatComeLaterHearHowItEnded) {
  notifier_.Settle();
  notifier_.GiveUp("all have died");
  notifier_.Welcome(&worker_, asked_);
  EXPECT_EQ(Types(), (Frames{"welcome", "error"}));
  notifier_.Leave(kEpoch, "drained");
  notifier_.Welcome(&worker_, asked_);
  EXPECT_EQ(sent_.back()["reason"], "drained");
  EXPECT_TRUE(worker_.stage.left());
}

TEST(WorkerExitTest, AnExitOfAnotherShapeIsAnEmptyOne) {
  const job::WorkerExit exit =
      job::WorkerExitFromJson({{"slot", "x"}, {"exitCode", 3.0}, {"atUs", -1}});
  EXPECT_EQ(exit.slot, -1);
  EXPECT_EQ(exit.exit_code, 3);
  EXPECT_EQ(exit.at_us, 0);
}

}  // namespace
}  // namespace ringmaster::app
