// Workers that stand still, or seem to: whom the launcher is asked about, and who is killed.
#include "sidecar/app/worker_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sidecar/app/testing/worker_table_fixture.h"

namespace ringmaster::app {
namespace {

using WorkerWatchTest = WorkerTableTest;

TEST_F(WorkerWatchTest, AWorkerThatASignalStoppedIsKilledAfterASecond) {
  Make(1);
  Launcher({{{"slot", 0}, {"incarnation", 3}, {"pid", 5}}});
  Worker(2, 0, 3, 0, false, 7);
  const auto state = [&](const char* letter) {
    Frame(1, {{"t", "state"}, {"slot", 0}, {"incarnation", 3}, {"state", letter}});
  };
  table_->Tick(now_ + milliseconds(749));
  EXPECT_EQ(LastTo(1, "look"), json::object()) << "two pings may be late on a busy machine";
  table_->Tick(now_ += milliseconds(750));
  EXPECT_EQ(LastTo(1, "look")["pid"], 7);
  state("T");
  EXPECT_EQ(LastTo(1, "kill"), json::object()) << "somebody may go on with it at once";
  now_ += milliseconds(250);
  state("S");
  state("t");
  EXPECT_EQ(LastTo(1, "kill"), json::object()) << "it computes, or is looked at with a debugger";
  state("T");
  EXPECT_EQ(LastTo(1, "kill")["incarnation"], 3);
}

TEST_F(WorkerWatchTest, AWorkerThatWasStoppedWhileTheSidecarWasAwayIsKilledToo) {
  Make(1);
  table_->orders().Restore(MakeView(kFirst, {{0, 3}}), now_);
  Launcher({{{"slot", 0}, {"incarnation", 3}, {"pid", 5}}});
  Pass(milliseconds(750));
  EXPECT_EQ(LastTo(1, "look")["pid"], 5) << "its own word for itself was the former sidecar's";
  Pass(milliseconds(250));
  Frame(1, {{"t", "state"}, {"slot", 0}, {"incarnation", 3}, {"state", "T"}});
  EXPECT_EQ(LastTo(1, "kill")["incarnation"], 3);
}

TEST_F(WorkerWatchTest, AWorkerThatPingsAndNeverLeavesItsViewThoughItIsToldToIsKilledInTheEnd) {
  Make(1);
  Launcher({{{"slot", 0}, {"incarnation", 3}, {"pid", 5}}});
  Worker(2, 0, 3, 0, false, 5);
  table_->orders().Install(MakeView(kFirst, {{0, 3}}), now_);
  const auto pass = [this](milliseconds time) {
    for (const SteadyTime end = now_ + time; now_ < end;) {
      Frame(2, {{"t", "ping"}, {"n", 1}});
      Pass(milliseconds(250));
    }
  };
  pass(seconds(120));
  table_->orders().Stop(kFirst);
  pass(seconds(118));
  now_ += std::chrono::hours(1);  // a machine that slept has not waited
  table_->Tick(now_);
  Frame(2, {{"t", "ping"}, {"n", 1}});
  EXPECT_EQ(LastTo(1, "kill"), json::object());
  pass(seconds(2));
  EXPECT_EQ(LastTo(1, "kill")["incarnation"], 3);
}

TEST_F(WorkerWatchTest, AWorkerThatLeavesItsViewIsLeftAlone) {
  Make(1);
  Launcher({{{"slot", 0}, {"incarnation", 3}, {"pid", 5}}});
  Worker(2, 0, 3, 0, false, 5);
  table_->orders().Install(MakeView(kFirst, {{0, 3}}), now_);
  table_->orders().Stop(kFirst);
  Frame(2, {{"t", "stopped"}, {"epoch", kFirst}});
  for (int i = 0; i < 400; ++i) {
    Frame(2, {{"t", "ping"}, {"n", 1}});
    Pass(milliseconds(250));
  }
  EXPECT_EQ(LastTo(1, "kill"), json::object());
}

TEST_F(WorkerWatchTest, AScriptThatHasNotCalledInitYetIsLeftAlone) {
  Make(1);
  table_->orders().Restore(MakeView(kFirst, {{0, 3}}), now_);
  Launcher({{{"slot", 0}, {"incarnation", 4}, {"pid", 5}}});
  Pass(seconds(60));
  EXPECT_EQ(LastTo(1, "look"), json::object());
  EXPECT_EQ(LastTo(1, "kill"), json::object());
}

// A worker that its launcher has started itself, in a view; it says something as late as can be.
class HaltedWorkerTest : public WorkerTableTest {
 protected:
  void SetUp() override {
    Make(1);
    Launcher({{{"slot", 0}, {"incarnation", 3}, {"pid", 5}}});
    Worker(2, 0, 3, 0, false, 5);
    table_->orders().Install(MakeView(kFirst, {{0, 3}}), now_);
  }
  void Say(const char* type) {
    Frame(1, {{"t", type}, {"slot", 0}, {"incarnation", 3}, {"standby", false}});
  }
  void Ping() { Frame(2, {{"t", "ping"}, {"n", 1}}); }
  // The launcher answers at once, whenever it is asked, what is true.
  void PassWithAnswers(milliseconds time, const char* state) {
    for (const SteadyTime end = now_ + time; now_ < end;) {
      const SteadyTime wake = table_->NextWake().value_or(end);
      now_ = std::min({end, now_ + milliseconds(250), std::max(wake, now_ + milliseconds(1))});
      const size_t before = sent_.size();
      table_->Tick(now_);
      for (size_t i = before; i < sent_.size(); ++i) {
        if (sent_[i].first == 1 && sent_[i].second["t"] == "look")
          Frame(1, {{"t", "state"}, {"slot", 0}, {"incarnation", 3}, {"state", state}});
      }
    }
  }
  bool Killed() const { return LastTo(1, "kill") != json::object(); }
};

TEST_F(HaltedWorkerTest, IsKilledTheMomentItsTimeIsOver) {
  PassWithAnswers(milliseconds(100), "S");
  Say("halted");
  EXPECT_EQ(table_->NextWake(), now_ + seconds(1));
  PassWithAnswers(milliseconds(999), "T");
  EXPECT_FALSE(Killed()) << "not by its silence either, which has lasted longer";
  PassWithAnswers(milliseconds(1), "T");
  const json kill = LastTo(1, "kill");
  EXPECT_EQ(kill["incarnation"], 3);
  EXPECT_EQ(kill["reason"],
            "stopped by a signal, as its launcher heard 1000 ms ago "
            "(elasticPolicy.stoppedWorkerSeconds)");
}

TEST_F(HaltedWorkerTest, IsLeftAloneWhenItGoesOnInTime) {
  for (int i = 0; i < 20; ++i) {
    Say("halted");
    PassWithAnswers(milliseconds(900), "T");
    Say("continued");
    EXPECT_EQ(table_->NextWake(), std::nullopt);
    Ping();
    PassWithAnswers(milliseconds(100), "S");
  }
  EXPECT_FALSE(Killed());
}

TEST_F(HaltedWorkerTest, IsLeftAloneByADebuggerOrWhenItGoesOnAtTheLastMoment) {
  for (const char* state : {"t", "S", "R"}) {
    Say("halted");
    PassWithAnswers(milliseconds(1500), state);
    EXPECT_EQ(table_->NextWake(), std::nullopt) << "its word is out of date";
    Ping();
  }
  EXPECT_FALSE(Killed());
}

TEST_F(HaltedWorkerTest, TheTimeWhileTheSidecarStoodStillDoesNotCount) {
  PassWithAnswers(milliseconds(1), "S");
  Say("halted");
  now_ += seconds(5);  // and `continued` may have yet to be read
  table_->Tick(now_);
  EXPECT_EQ(LastTo(1, "look"), json::object());
  PassWithAnswers(milliseconds(999), "T");
  EXPECT_FALSE(Killed());
  PassWithAnswers(milliseconds(1), "T");
  EXPECT_TRUE(Killed());
}

TEST_F(HaltedWorkerTest, ASidecarThatWakesUpCountsFromTheMomentInWhichItHears) {
  PassWithAnswers(milliseconds(1), "S");
  now_ += seconds(5);
  Say("halted");  // read before the first tick
  table_->Tick(now_);
  PassWithAnswers(milliseconds(1000), "T");
  EXPECT_TRUE(Killed());
}

TEST_F(HaltedWorkerTest, ASidecarThatStartsAnewHearsItByTheHello) {
  Make(1);
  table_->orders().Restore(MakeView(kFirst, {{0, 3}}), now_);
  Launcher({{{"slot", 0}, {"incarnation", 3}, {"pid", 5}, {"stopped", true}}});
  PassWithAnswers(milliseconds(999), "T");
  EXPECT_FALSE(Killed());
  PassWithAnswers(milliseconds(1), "T");
  EXPECT_THAT(LastTo(1, "kill")["reason"].get<std::string>(),
              testing::HasSubstr("as its launcher heard"));
}

TEST_F(HaltedWorkerTest, TheJobsOwnBoundRules) {
  stopped_for_ = seconds(5);
  SetUp();
  Say("halted");
  PassWithAnswers(milliseconds(4999), "T");
  EXPECT_FALSE(Killed());
  PassWithAnswers(milliseconds(1), "T");
  EXPECT_TRUE(Killed());
}

TEST_F(HaltedWorkerTest, NobodyWaitsForAScriptThatHasNotCalledInitYet) {
  Launcher({{{"slot", 0}, {"incarnation", 4}, {"pid", 6}, {"stopped", true}}});
  EXPECT_EQ(table_->NextWake(), std::nullopt);
  PassWithAnswers(seconds(5), "T");
  EXPECT_FALSE(Killed());
}

TEST_F(HaltedWorkerTest, AStandbyIsLeftAloneUntilItIsPromoted) {
  Frame(1, {{"t", "started"}, {"slot", -1}, {"incarnation", 1}, {"pid", 9}, {"standby", true}});
  Frame(1, {{"t", "halted"}, {"slot", -1}, {"incarnation", 1}, {"standby", true}});
  EXPECT_EQ(table_->NextWake(), std::nullopt);
  Frame(1, {{"t", "halted"}, {"slot", 0}, {"incarnation", 9}, {"standby", false}});
  EXPECT_EQ(table_->NextWake(), std::nullopt) << "nobody is called so";
}

// Its library's own thread answers; nobody ends a worker because it computes.
TEST_F(HaltedWorkerTest, AWorkerThatComputesForLongIsNeverPunished) {
  for (int i = 0; i < 600; ++i) {
    Ping();
    PassWithAnswers(milliseconds(250), "R");
  }
  EXPECT_EQ(LastTo(1, "look"), json::object());
  for (int i = 0; i < 50; ++i) {  // its thread, too, finds a core only now and then
    Ping();
    PassWithAnswers(seconds(9), "R");
  }
  EXPECT_FALSE(Killed());
  EXPECT_EQ(table_->processes().Living().size(), 1u);
}

}  // namespace
}  // namespace ringmaster::app
