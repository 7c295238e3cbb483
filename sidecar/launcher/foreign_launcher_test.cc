// The launcher of processes whose collectives are not ours: it is the member of the view itself.
#include "sidecar/launcher/testing/launcher_fixture.h"

namespace ringmaster::launcher {
namespace {

json ViewFrame(uint64_t number, const json& tcp) {
  const json rank = {{"pod", 0}, {"slot", 0}, {"incarnation", 1}, {"tcp", tcp}, {"joined", false}};
  return {
      {"t", "view"},
      {"self", 0},
      {"view", {{"epoch", number}, {"reason", "Bootstrap"}, {"train", true}, {"ranks", {rank}}}}};
}

class ForeignLauncherTest : public LauncherTest {
 protected:
  // Starts `script` with one slot, and founds the first view.
  void StartInView(const std::string& script, const json& rules = json::array()) {
    Listen();
    Start(script, {"RINGMASTER_COLLECTIVES={\"backend\":\"None\"}",
                   "RINGMASTER_FAILURE_POLICY=" + json{{"rules", rules}}.dump()});
    for (int i = 0; i < 2; ++i) {
      pollfd fd{listener_, POLLIN, 0};
      ASSERT_EQ(poll(&fd, 1, 20000), 1) << "the launcher does not connect";
      connection_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      reader_ = {};
      hello_ = Await("hello");
      const bool launcher = hello_["role"] == "launcher";
      if (launcher) running_ = hello_["running"];
      if (!launcher) address_ = hello_["tcp"];
      (launcher ? launcher_fd_ : worker_fd_) = connection_;
    }
    connection_ = -1;
    ToWorker();
    Send({{"t", "welcome"}, {"state", "bootstrap"}, {"pingMs", 60000}, {"fenceMs", 600000}});
    EXPECT_EQ(Await("enter")["t"], "enter");
    Send(ViewFrame(1, address_));
    EXPECT_EQ(Await("installed")["epoch"], 1);
  }
  void TearDown() override {
    connection_ = -1;
    close(launcher_fd_);
    close(worker_fd_);
    LauncherTest::TearDown();
  }
  // The sidecar of the stand-in closes, and another one takes its connection.
  void Reconnect() {
    close(worker_fd_);
    worker_fd_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    reader_ = {};
    connection_ = worker_fd_;
    EXPECT_EQ(Await("hello")["role"], "worker");
  }
  // For another StartInView.
  void Restart() {
    TearDown();
    launcher_ = listener_ = launcher_fd_ = worker_fd_ = -1;
    unlink(Path("s").c_str());
  }
  // Whom Await and Send speak with. What was read of the other and not asked for is lost.
  void ToWorker() { Use(worker_fd_); }
  void ToLauncher() { Use(launcher_fd_); }

  json running_, address_;

 private:
  void Use(int fd) {
    if (connection_ != fd) reader_ = {};
    connection_ = fd;
  }
  int launcher_fd_ = -1, worker_fd_ = -1;
};

TEST_F(ForeignLauncherTest, AProcessRunsInAViewAndIsGoneBeforeTheViewCountsAsStopped) {
  StartInView(
      "trap 'sleep 0.3; echo saved > $DIR/saved; exit 0' TERM; echo $$ > $DIR/pids; echo $RANK "
      "$WORLD_SIZE "
      "$MASTER_ADDR:$MASTER_PORT >> $DIR/env; while :; do sleep 0.01; done");
  ASSERT_EQ(running_.size(), 1u);  // as if the worker lived already
  const pid_t pid = Pids("pids", 1)[0];
  Send({{"t", "stop"}, {"epoch", 1}});
  EXPECT_EQ(Await("stopped")["epoch"], 1);
  EXPECT_FALSE(Alive(pid));
  EXPECT_TRUE(std::filesystem::exists(Path("saved")));
  ToLauncher();
  const json exited = Await("exited");
  EXPECT_EQ(exited["byUs"], true);
  EXPECT_EQ(exited["stays"], true);
  std::filesystem::remove(Path("pids"));
  ToWorker();
  Send(ViewFrame(2, address_));
  EXPECT_EQ(Await("installed")["epoch"], 2);
  Pids("pids", 1);
  std::ifstream file(Path("env"));
  for (std::string line; std::getline(file, line);)
    EXPECT_EQ(line, "0 1 " + address_.get<std::string>());
}

TEST_F(ForeignLauncherTest, AKilledProcessBreaksTheViewAndItsLauncherStaysInIt) {
  StartInView("echo $$ > $DIR/pids; exec sleep 1000");
  kill(Pids("pids", 1)[0], SIGKILL);
  EXPECT_EQ(Await("broken")["epoch"], 1);
  ToLauncher();
  EXPECT_NE(Await("started")["pid"], 0);  // what people see, and may kill
  const json exited = Await("exited");
  EXPECT_EQ(exited["exitCode"], 137);
  EXPECT_EQ(exited["byUs"], false);
  EXPECT_EQ(exited["stays"], true);
  ToWorker();
  Send({{"t", "stop"}, {"epoch", 1}});
  EXPECT_EQ(Await("stopped")["epoch"], 1);
}

TEST_F(ForeignLauncherTest, AnErrorAfterAnotherOnesDeathIsNoFailureOfItsOwn) {
  StartInView("echo $$ > $DIR/pids; exit 1");
  Pids("pids", 1);
  Send({{"t", "stop"}, {"epoch", 1}});  // a process elsewhere has died
  EXPECT_EQ(Await("stopped")["epoch"], 1);
  ToLauncher();
  const json exited = Await("exited");
  EXPECT_EQ(exited["exitCode"], 1);
  EXPECT_EQ(exited["byUs"], true);
  EXPECT_EQ(exited["restarting"], true);
}

json Rule(int code, const std::string& action) {
  return json::array({{{"onExitCodes", {code}}, {"action", action}}});
}

// The others fail by themselves soon, and would fail the job before the view is stopped.
TEST_F(ForeignLauncherTest, WhatDoesNotFailTheJobBreaksTheViewBeforeItIsJudged) {
  for (const char* action : {"RestartWorker", "ReplacePod", "Ignore"}) {
    StartInView("exit 42", Rule(42, action));
    EXPECT_EQ(Await("broken")["epoch"], 1) << action;
    Send({{"t", "stop"}, {"epoch", 1}});  // too soon for our word: another one was first
    EXPECT_EQ(Await("stopped")["epoch"], 1) << action;
    ToLauncher();
    const json exited = Await("exited");
    EXPECT_EQ(exited["byUs"], true) << action;
    EXPECT_EQ(exited["stays"], true) << action;
    Restart();
  }
  StartInView("kill -ABRT $$");
  EXPECT_EQ(Await("broken")["epoch"], 1);
  Send({{"t", "stop"}, {"epoch", 1}});
  ToLauncher();
  EXPECT_EQ(Await("exited")["byUs"], true);
}

TEST_F(ForeignLauncherTest, WhoBreaksAViewFirstIsJudgedWhenThatHasEndedIt) {
  for (const char* action : {"RestartWorker", "ReplacePod", "Ignore"}) {
    StartInView("exit 42", Rule(42, action));
    EXPECT_EQ(Await("broken")["epoch"], 1) << action;
    usleep(1'500'000);  // the patience of a sidecar
    Send({{"t", "stop"}, {"epoch", 1}});
    const bool restarts = std::string(action) == "RestartWorker";
    ToLauncher();
    const json exited = Await("exited");
    EXPECT_EQ(exited["byUs"], false) << action;
    EXPECT_EQ(exited["stays"], restarts) << action;
    if (!restarts) {
      EXPECT_EQ(ExitCode(), 42) << action;
    }
    Restart();
  }
}

TEST_F(ForeignLauncherTest, TheFirstExitWithZeroIsTheJobsEnd) {
  StartInView("exit 0");
  EXPECT_EQ(Await("finished")["epoch"], 1);
  ToLauncher();
  Send({{"t", "finish"}});
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(ForeignLauncherTest, AFailureJustBeforeTheEndIsTheExitCode) {
  StartInView("echo $$ > $DIR/pids; exit 7");
  const pid_t pid = Pids("pids", 1)[0];
  ASSERT_TRUE(Eventually([&] { return kill(pid, 0) != 0; }));  // the launcher has taken its end
  ToLauncher();
  Send({{"t", "finish"}});  // the others end well
  const json exited = Await("exited");
  EXPECT_EQ(exited["exitCode"], 7);
  EXPECT_EQ(exited["byUs"], false);
  EXPECT_EQ(exited["restarting"], false);
  EXPECT_EQ(ExitCode(), 7);
}

TEST_F(ForeignLauncherTest, AFailureIsNotHeldAgainstAPodThatIsStopped) {
  StartInView("echo $$ > $DIR/pids; exit 7");
  const pid_t pid = Pids("pids", 1)[0];
  ASSERT_TRUE(Eventually([&] { return kill(pid, 0) != 0; }));
  ToLauncher();
  Send({{"t", "stop"}, {"graceSeconds", 1}, {"reason", "the grace period ends"}});
  EXPECT_EQ(Await("exited")["byUs"], true);
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(ForeignLauncherTest, ASidecarThatStartsAgainHearsAgainThatTheViewIsBrokenUntilTheNextOne) {
  StartInView("echo $$ > $DIR/pids; exec sleep 1000");
  kill(Pids("pids", 1)[0], SIGKILL);
  EXPECT_EQ(Await("broken")["epoch"], 1);
  Reconnect();
  Send({{"t", "welcome"}, {"state", "member"}, {"epoch", 1}, {"pingMs", 60000}});
  EXPECT_EQ(Await("broken")["epoch"], 1);
  Send({{"t", "stop"}, {"epoch", 1}});
  EXPECT_EQ(Await("stopped")["epoch"], 1);
  Send(ViewFrame(2, address_));
  EXPECT_EQ(Await("installed")["epoch"], 2);
  Reconnect();
  Send({{"t", "welcome"}, {"state", "member"}, {"epoch", 2}, {"pingMs", 60000}});
  Send({{"t", "arm"}, {"epoch", 2}});
  EXPECT_EQ(AwaitOneOf({"boundary", "broken"})["t"], "boundary");
}

TEST_F(ForeignLauncherTest, ASidecarThatStartsAgainHearsAgainThatTheProcessHasFinished) {
  StartInView("exit 0");
  EXPECT_EQ(Await("finished")["epoch"], 1);
  Reconnect();
  Send({{"t", "welcome"}, {"state", "member"}, {"epoch", 1}, {"pingMs", 60000}});
  EXPECT_EQ(Await("finished")["epoch"], 1);
}

TEST_F(ForeignLauncherTest, SaysAtOnceThatASignalStopsTheProcessOfAView) {
  StartInView("echo $$ > $DIR/pids; exec sleep 1000");
  const pid_t pid = Pids("pids", 1)[0];
  kill(pid, SIGSTOP);
  ToLauncher();
  const json halted = Await("halted");
  EXPECT_EQ(halted["slot"], 0);
  EXPECT_EQ(halted["incarnation"], 1) << "the stand-in's, which is the member";
}

TEST_F(ForeignLauncherTest, AWorkerThatTheSidecarReplacesComesAgainAsAnother) {
  StartInView("echo $$ > $DIR/pids; exec sleep 1000");
  const pid_t pid = Pids("pids", 1)[0];
  ToLauncher();
  Send({{"t", "kill"}, {"slot", 0}, {"incarnation", 1}, {"reason", "from the checkpoint"}});
  const json exited = Await("exited");
  EXPECT_EQ(exited["stays"], false);
  EXPECT_EQ(Await("started")["incarnation"], 2);
  EXPECT_FALSE(Alive(pid));
  connection_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  reader_ = {};
  const json again = Await("hello");
  EXPECT_EQ(again["incarnation"], 2);
  EXPECT_EQ(again["epoch"], 0);
  close(connection_);
}

}  // namespace
}  // namespace ringmaster::launcher
