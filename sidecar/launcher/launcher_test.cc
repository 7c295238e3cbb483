// The launcher where workers link our collectives.
#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

#include "sidecar/launcher/slots.h"
#include "sidecar/launcher/testing/launcher_fixture.h"

namespace ringmaster::launcher {
namespace {

TEST_F(LauncherTest, GivesEachSlotItsEnvironment) {
  Listen();
  Start(
      R"(echo $RINGMASTER_SLOT $RINGMASTER_INCARNATION $RINGMASTER_STANDBY $HOROVOD_RANK $HOROVOD_SIZE \
$HOROVOD_LOCAL_RANK $HOROVOD_LOCAL_SIZE $HOROVOD_CROSS_RANK $HOROVOD_CROSS_SIZE > $DIR/env.$RINGMASTER_SLOT)",
      {"RINGMASTER_SLOTS=2", "RINGMASTER_REPLICA_INDEX=1", "RINGMASTER_REPLICAS=3"});
  Accept();
  Send({{"t", "finish"}});
  EXPECT_EQ(ExitCode(), 0);
  std::string line;
  std::ifstream file(Path("env.1"));
  std::getline(file, line);
  EXPECT_EQ(line, "1 1 0 3 6 1 2 1 3");
}

// The container's list has more than there are slots.
TEST_F(LauncherTest, ASlotSeesItsOwnGpuAloneWhereTheJobAsksForIt) {
  Listen();
  Start("echo $CUDA_VISIBLE_DEVICES > $DIR/gpus.$RINGMASTER_SLOT",
        {"RINGMASTER_SLOTS=2", "CUDA_VISIBLE_DEVICES=4,GPU-abc,6",
         R"(RINGMASTER_COLLECTIVES={"visibleGpus":"Own"})"});
  Accept();
  Send({{"t", "finish"}});
  EXPECT_EQ(ExitCode(), 0);
  std::string first, second;
  std::ifstream(Path("gpus.0")) >> first;
  std::ifstream(Path("gpus.1")) >> second;
  EXPECT_EQ(first, "4");
  EXPECT_EQ(second, "GPU-abc");
}

TEST_F(LauncherTest, WorkersFindLibraryAndPackageBeforeWhatTheImageHas) {
  Listen();
  Start("echo $LD_LIBRARY_PATH $PYTHONPATH > $DIR/env",
        {"RINGMASTER_MOUNT_RINGMASTER_BIN=/opt/r", "LD_LIBRARY_PATH=/of/the/image:/b",
         "PYTHONPATH="});
  Accept();
  Send({{"t", "finish"}});
  EXPECT_EQ(ExitCode(), 0);
  std::string line;
  std::ifstream file(Path("env"));
  std::getline(file, line);
  EXPECT_EQ(line, "/opt/r/lib:/of/the/image:/b /opt/r/python");
}

TEST_F(LauncherTest, RestartsAKilledWorkerAtOnceWithARisingIncarnation) {
  Listen();
  Start("exec sleep 1000");
  Accept();
  json started = Await("started");
  EXPECT_EQ(started["incarnation"], 1);
  kill(started["pid"], SIGKILL);
  json exited = Await("exited");
  EXPECT_EQ(exited["exitCode"], 137);
  EXPECT_EQ(exited["signal"], 9);
  EXPECT_EQ(exited["restarting"], true);
  EXPECT_GT(exited["atUs"], 0);
  json again = Await("started");
  EXPECT_EQ(again["incarnation"], 2);
  EXPECT_NE(again["pid"], started["pid"]);
  Send({{"t", "stop"}, {"graceSeconds", 5}});
  EXPECT_EQ(ExitCode(), 0);
  EXPECT_FALSE(Alive(again["pid"]));
}

TEST_F(LauncherTest, KillsAStoppedWorkerThatTheSidecarGaveUp) {
  Listen();
  Start("exec sleep 1000");
  Accept();
  json started = Await("started");
  kill(started["pid"], SIGSTOP);
  Send({{"t", "kill"}, {"slot", 0}, {"incarnation", 7}, {"reason", "another one"}});
  Send({{"t", "kill"}, {"slot", 0}, {"incarnation", 1}, {"reason", "silent"}});
  EXPECT_EQ(Await("exited")["restarting"], true);
  EXPECT_EQ(Await("started")["incarnation"], 2);
  Send({{"t", "stop"}, {"graceSeconds", 0}});
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(LauncherTest, TellsANewSidecarWhatRuns) {
  Start("exec sleep 1000");  // nobody listens yet
  Listen();
  Accept();
  pid_t pid = Await("started")["pid"];
  close(connection_);
  Accept();
  ASSERT_EQ(hello_["running"].size(), 1u);
  EXPECT_EQ(hello_["running"][0]["pid"], pid);
  EXPECT_EQ(hello_["running"][0]["incarnation"], 1);
  Send({{"t", "stop"}, {"graceSeconds", 0}});
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(LauncherTest, ANonZeroExitFailsThePodWithItsCode) {
  Listen();
  Start("[ $RINGMASTER_SLOT = 1 ] && exit 3; echo $$ > $DIR/pids; exec sleep 1000",
        {"RINGMASTER_SLOTS=2"});
  Accept();
  json exited = Await("exited");
  EXPECT_EQ(exited["exitCode"], 3);
  EXPECT_EQ(exited["restarting"], false);
  EXPECT_EQ(ExitCode(), 3);
}

TEST_F(LauncherTest, RulesRestartOrIgnore) {
  Listen();
  Start(
      "[ $RINGMASTER_SLOT = 0 ] && exit 4; [ $RINGMASTER_INCARNATION = 1 ] && exit 5; exec sleep "
      "1000",
      {"RINGMASTER_SLOTS=2",
       R"(RINGMASTER_FAILURE_POLICY={"rules":[{"onExitCodes":[4],"action":"Ignore"},)"
       R"({"onExitCodes":[5],"action":"RestartWorker"}]})"});
  Accept();
  std::set<int> codes;
  for (int i = 0; i < 2; ++i) {
    json exited = Await("exited");
    codes.insert(exited["exitCode"].get<int>());
    EXPECT_EQ(exited["restarting"], exited["exitCode"] == 5);
  }
  EXPECT_EQ(codes, (std::set<int>{4, 5}));
  Send({{"t", "stop"}, {"graceSeconds", 0}});
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(LauncherTest, ExitZeroWithoutFinishIsAFault) {
  Listen();
  ASSERT_EQ(mkfifo(Path("gate").c_str(), 0600), 0);
  Start("read line < $DIR/gate; exit 0");
  Accept();  // one that is not connected is waited for
  std::ofstream(Path("gate")) << "go\n";
  EXPECT_EQ(Await("exited")["exitCode"], 0);
  EXPECT_EQ(ExitCode(), 1);
  EXPECT_NE(Log().find("ringmaster-launcher: error: worker ended before the job did"),
            std::string::npos)
      << "the operator quotes it: the exit code alone would accuse the script of a 1";
}

TEST_F(LauncherTest, ExitZeroIsRightWhenFinishComesWithinTheGrace) {
  Listen();
  Start("exit 0");
  Accept();
  Await("exited");
  Send({{"t", "finish"}});
  EXPECT_EQ(ExitCode(), 0);
}

// The others may have agreed to end while the sidecar was away: it hears of that when it is back.
TEST_F(LauncherTest, ExitZeroWhileTheSidecarIsAwayWaitsForItsWord) {
  Listen();
  ASSERT_EQ(mkfifo(Path("gate").c_str(), 0600), 0);
  Start("read line < $DIR/gate; exit 0");
  Accept();
  Await("started");
  close(std::exchange(connection_, -1));
  close(std::exchange(listener_, -1));
  unlink(Path("s").c_str());
  std::ofstream(Path("gate")) << "go\n";
  std::this_thread::sleep_for(kFinishGrace + std::chrono::milliseconds(500));
  Listen();
  Accept();
  EXPECT_EQ(Await("exited")["exitCode"], 0);
  Send({{"t", "finish"}});
  EXPECT_EQ(ExitCode(), 0);
}

// A sidecar that a signal has stopped: it is connected, and reads nothing.
TEST_F(LauncherTest, ExitZeroWhileTheSidecarStandsStillWaitsForItsWord) {
  Listen();
  ASSERT_EQ(mkfifo(Path("gate").c_str(), 0600), 0);
  Start("read line < $DIR/gate; exit 0");
  Accept();
  Await("started");
  std::ofstream(Path("gate")) << "go\n";
  std::this_thread::sleep_for(kFinishGrace + std::chrono::milliseconds(500));
  EXPECT_EQ(Await("exited")["exitCode"], 0);
  Send({{"t", "finish"}});
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(LauncherTest, AFailureAfterFinishIsTheExitCode) {
  Listen();
  ASSERT_EQ(mkfifo(Path("gate").c_str(), 0600), 0);
  Start("read line < $DIR/gate; exit 7");
  Accept();
  Send({{"t", "finish"}});
  std::ofstream(Path("gate")) << "go\n";
  EXPECT_EQ(ExitCode(), 7);
}

TEST_F(LauncherTest, ACommandThatDoesNotExistIsSaidOnceWithItsName) {
  Listen();
  StartCommand({"/nonexistent/train"});
  EXPECT_EQ(ExitCode(), 127);
  EXPECT_NE(Log().find("ringmaster-launcher: error: cannot start '"), std::string::npos);
}

// Its program is being written, so the kernel refuses to run it for now.
TEST_F(LauncherTest, AWorkerThatCannotBeStartedJustNowIsTriedAgain) {
  Listen();
  std::filesystem::copy_file("/bin/sleep", Path("busy"));
  int writer = open(Path("busy").c_str(), O_WRONLY | O_CLOEXEC);
  StartCommand({Path("busy"), "1000"});
  Accept();
  ASSERT_TRUE(Eventually([&] { return Log().find("it is tried again") != std::string::npos; }));
  close(writer);
  EXPECT_EQ(Await("started")["incarnation"], 1);
  Send({{"t", "stop"}, {"graceSeconds", 0}});
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(LauncherTest, PromotesTheStandbyAndStartsAnother) {
  Listen();
  Start("exec sleep 1000", {"RINGMASTER_STANDBYS=1"});
  Accept();
  json worker = Await("started"), standby = Await("started");
  if (worker["standby"] == true) std::swap(worker, standby);
  ASSERT_EQ(standby["standby"], true);
  kill(worker["pid"], SIGKILL);
  json promoted = Await("promoted");
  EXPECT_EQ(promoted["pid"], standby["pid"]);
  EXPECT_EQ(promoted["slot"], 0);
  EXPECT_EQ(promoted["incarnation"], 2);
  json next = Await("started");
  EXPECT_EQ(next["standby"], true);
  Send({{"t", "finish"}});
  EXPECT_TRUE(Eventually([&] { return !Alive(next["pid"]); }))
      << "standbys end when the job finishes";
  EXPECT_TRUE(Alive(promoted["pid"]));
  Send({{"t", "stop"}, {"graceSeconds", 0}});
  ExitCode();
}

constexpr char kWithLoaders[] =
    "sleep 1000 & echo $! >> $DIR/kids; setsid sh -c 'sleep 1000 & echo $! >> $DIR/kids; echo $$ "
    ">> $DIR/kids; wait' & "
    "echo $$ >> $DIR/workers; wait";

TEST_F(LauncherTest, KillsTheChildrenOfADeadWorkerButNotThoseOfOthers) {
  Listen();
  Start(R"([ $RINGMASTER_SLOT = 1 ] && { sleep 1000 & echo $! > $DIR/other; wait; })" +
            std::string("\n") + "[ $RINGMASTER_INCARNATION = 2 ] && exec sleep 1000\n" +
            kWithLoaders,
        {"RINGMASTER_SLOTS=2"});
  Accept();
  std::vector<pid_t> kids = Pids("kids", 3);
  pid_t other = Pids("other", 1)[0];
  kill(Pids("workers", 1)[0], SIGKILL);
  for (pid_t kid : kids) EXPECT_TRUE(Eventually([&] { return !Alive(kid); })) << kid;
  EXPECT_EQ(Await("exited")["exitCode"], 137);
  EXPECT_TRUE(Alive(other));
  Send({{"t", "stop"}, {"graceSeconds", 0}});
  EXPECT_EQ(ExitCode(), 0);
  EXPECT_FALSE(Alive(other));
}

// A cache or an agent, say, with an environment of its own: it is none of the other slot's.
TEST_F(LauncherTest, ADaemonOfALivingWorkerOutlivesAnotherWorker) {
  Listen();
  Start(
      R"([ $RINGMASTER_SLOT = 0 ] && (setsid env -i sh -c 'echo $$ > '$DIR/daemon'; exec sleep 1000' &))" +
          std::string("\necho $$ > $DIR/worker.$RINGMASTER_SLOT; sleep 0.1; exec sleep 1000"),
      {"RINGMASTER_SLOTS=2"});
  Accept();
  const pid_t daemon = Pids("daemon", 1)[0], second = Pids("worker.1", 1)[0];
  ASSERT_TRUE(Eventually([&] {
    std::ifstream stat("/proc/" + std::to_string(daemon) + "/stat");
    std::string pid, name, state, parent;
    stat >> pid >> name >> state >> parent;
    return parent == std::to_string(launcher_);
  }));
  kill(second, SIGKILL);
  EXPECT_EQ(Await("exited")["slot"], 1);
  EXPECT_EQ(Await("started")["incarnation"], 2);
  // Its answer comes after it has swept up.
  Send({{"t", "look"}, {"slot", 0}, {"incarnation", 1}, {"pid", daemon}});
  EXPECT_EQ(Await("state")["state"], "S");
  Send({{"t", "stop"}, {"graceSeconds", 0}});
  EXPECT_EQ(ExitCode(), 0);
  EXPECT_FALSE(Alive(daemon)) << "all end with the launcher";
}

TEST_F(LauncherTest, SeesExitsThoughWhoeverStartedItIgnoresThem) {
  Listen();
  const auto before = signal(SIGCHLD, SIG_IGN);
  Start("exit 3");
  signal(SIGCHLD, before);
  EXPECT_EQ(ExitCode(), 3);
}

// Both are gone before the launcher comes to it, as where it gets no time.
TEST_F(LauncherTest, AStandbyThatHasEndedTakesNobodysPlace) {
  Listen();
  Start("echo $$ > $DIR/pid.$RINGMASTER_STANDBY; exec sleep 1000", {"RINGMASTER_STANDBYS=1"});
  Accept();
  const pid_t worker = Pids("pid.0", 1)[0], standby = Pids("pid.1", 1)[0];
  kill(launcher_, SIGSTOP);
  kill(worker, SIGKILL);
  kill(standby, SIGTERM);
  ASSERT_TRUE(Eventually([&] { return !Alive(worker) && !Alive(standby); }));
  kill(launcher_, SIGCONT);
  EXPECT_EQ(Await("exited")["slot"], 0);
  EXPECT_EQ(AwaitOneOf({"promoted", "started"})["t"], "started");
  Send({{"t", "stop"}, {"graceSeconds", 0}});
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(LauncherTest, LeavesNobodyBehindWhenTerminatedWithoutASidecar) {
  Start(kWithLoaders);
  std::vector<pid_t> kids = Pids("kids", 3);
  const pid_t worker = Pids("workers", 1)[0];  // it may be written after them
  kill(launcher_, SIGTERM);
  EXPECT_EQ(ExitCode(), 128 + SIGTERM);
  for (pid_t kid : kids) EXPECT_FALSE(Alive(kid)) << kid;
  EXPECT_FALSE(Alive(worker));
}

TEST_F(LauncherTest, AsksTheSidecarToDrainBeforeItPassesSigtermOn) {
  Listen();
  Start("echo $$ > $DIR/pids; exec sleep 1000");
  Accept();
  pid_t worker = Pids("pids", 1)[0];
  kill(launcher_, SIGTERM);
  EXPECT_EQ(Await("term")["graceSeconds"], 30);
  EXPECT_TRUE(Alive(worker)) << "it finishes its step first";
  Send({{"t", "finish"}});
  kill(worker, SIGKILL);  // after `left` a worker ends by itself; sleep can't
  ExitCode();
}

bool HasSocket(pid_t pid) {
  std::error_code ignored;
  for (const auto& fd :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", ignored)) {
    if (std::filesystem::read_symlink(fd, ignored).string().starts_with("socket:")) return true;
  }
  return false;
}

// The sidecar is there again in a moment, as when SIGTERM meets its restart.
TEST_F(LauncherTest, ASidecarThatComesBackAfterSigtermDrainsThePod) {
  Listen();
  Start("echo $$ > $DIR/pids; exec sleep 1000");
  Accept();
  const pid_t worker = Pids("pids", 1)[0];
  close(std::exchange(connection_, -1));
  close(std::exchange(listener_, -1));
  unlink(Path("s").c_str());
  ASSERT_TRUE(Eventually([&] { return !HasSocket(launcher_); })) << "it has seen that";
  Listen();
  kill(launcher_, SIGTERM);
  Accept();
  EXPECT_EQ(Await("term")["graceSeconds"], 30);
  EXPECT_TRUE(Alive(worker)) << "it finishes its step first";
  Send({{"t", "finish"}, {"left", true}});
  kill(worker, SIGKILL);
  ExitCode();
}

// Its pod may not be deleted, as where its machine shuts down, and 0 would mean that the job is
// done.
TEST_F(LauncherTest, EndsWithSigtermIfItLeftForThatReasonAndNotBecauseTheJobFinishes) {
  for (const bool left : {true, false}) {
    Listen();
    Start("trap 'exit 0' TERM; touch $DIR/runs; while :; do sleep 0.1; done");
    Accept();
    ASSERT_TRUE(Eventually([&] { return access(Path("runs").c_str(), F_OK) == 0; }));
    unlink(Path("runs").c_str());
    kill(launcher_, SIGTERM);
    Await("term");
    Send({{"t", "finish"}, {"left", left}});
    Send({{"t", "stop"}, {"graceSeconds", 5}});
    EXPECT_EQ(ExitCode(), left ? 128 + SIGTERM : 0);
    close(std::exchange(connection_, -1));
    close(std::exchange(listener_, -1));
    unlink(Path("s").c_str());
  }
}

// As when a liveness probe restarts the sidecar's container.
TEST_F(LauncherTest, EndsWithSigtermIfThePodLeftBecauseTheSidecarGotIt) {
  const auto ends = [this](const std::vector<json>& frames) {
    Listen();
    Start("trap 'exit 0' TERM; touch $DIR/runs; while :; do sleep 0.1; done");
    Accept();
    EXPECT_TRUE(Eventually([&] { return access(Path("runs").c_str(), F_OK) == 0; }));
    unlink(Path("runs").c_str());
    for (const json& frame : frames) Send(frame);
    const int code = ExitCode();
    close(std::exchange(connection_, -1));
    close(std::exchange(listener_, -1));
    unlink(Path("s").c_str());
    return code;
  };
  const json stop = {{"t", "stop"}, {"graceSeconds", 5}};
  const json terminated = {{"t", "stop"}, {"graceSeconds", 5}, {"terminated", true}};
  EXPECT_EQ(ends({{{"t", "finish"}, {"left", true}, {"terminated", true}}, stop}), 128 + SIGTERM);
  EXPECT_EQ(ends({terminated}), 128 + SIGTERM);
  EXPECT_EQ(ends({{{"t", "finish"}, {"left", true}, {"terminated", false}}, stop}), 0);
  EXPECT_EQ(ends({{{"t", "finish"}, {"left", false}}, terminated}), 0) << "the job finishes";
}

// As when whoever collects the log has stalled, and a worker has filled the pipe.
TEST_F(LauncherTest, GoesOnThoughNobodyReadsItsLog) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  while (write(ends[1], "full", 4) > 0) {
  }
  fcntl(ends[1], F_SETFL, 0);
  log_to_ = ends[1];
  Listen();
  Start("exec 2>/dev/null; echo $$ >> $DIR/pids; exec sleep 1000");
  close(ends[1]);
  Accept();
  kill(Pids("pids", 1)[0], SIGKILL);
  EXPECT_EQ(Await("exited")["restarting"], true);
  EXPECT_EQ(Await("started")["incarnation"], 2);
  Pids("pids", 2);
  std::string text(1 << 20, '\0');
  EXPECT_TRUE(Eventually([&] {
    const ssize_t got = read(ends[0], text.data(), text.size());
    return got > 0 && text.find("worker exited slot=0") < static_cast<size_t>(got);
  })) << "it is said when the log is read again";
  Send({{"t", "stop"}, {"graceSeconds", 0}});
  EXPECT_EQ(ExitCode(), 0);
  close(ends[0]);
}

TEST_F(LauncherTest, KillsAWorkerThatIgnoresSigterm) {
  Listen();
  Start("trap '' TERM; echo $$ > $DIR/pids; while :; do sleep 1000; done");
  Accept();
  pid_t worker = Pids("pids", 1)[0];
  Send({{"t", "stop"}, {"graceSeconds", 0}});
  EXPECT_EQ(ExitCode(), 0);
  EXPECT_FALSE(Alive(worker));
}

TEST_F(LauncherTest, KillsAllWhenItsParentDies) {
  pid_t parent = fork();
  if (parent == 0) {
    Start(kWithLoaders);
    pause();
    _exit(0);
  }
  std::vector<pid_t> kids = Pids("kids", 3);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  for (pid_t kid : kids) EXPECT_TRUE(Eventually([&] { return !Alive(kid); })) << kid;
  EXPECT_TRUE(Eventually([] { return waitpid(-1, nullptr, WNOHANG) < 0; })) << "somebody is left";
}

TEST_F(LauncherTest, TellsWhetherASignalStoppedAWorker) {
  Listen();
  Start("echo $$ > $DIR/pids; exec sleep 1000");
  Accept();
  const pid_t worker = Pids("pids", 1)[0];
  const auto state = [&](pid_t pid) {
    Send({{"t", "look"}, {"slot", 0}, {"incarnation", 1}, {"pid", pid}});
    return Await("state")["state"].get<std::string>();
  };
  EXPECT_TRUE(Eventually([&] { return state(worker) == "S"; }));
  kill(worker, SIGSTOP);
  EXPECT_TRUE(Eventually([&] { return state(worker) == "T"; }));
  EXPECT_EQ(state(-1), "X");
  Send({{"t", "stop"}, {"graceSeconds", 0}});
  ExitCode();
}

TEST_F(LauncherTest, SaysAtOnceThatASignalStopsAWorkerOrLetsItGoOn) {
  Listen();
  Start("exec sleep 1000");
  Accept();
  const pid_t worker = Await("started")["pid"];
  kill(worker, SIGSTOP);
  const json halted = Await("halted");
  EXPECT_EQ(halted["slot"], 0);
  EXPECT_EQ(halted["incarnation"], 1);
  EXPECT_EQ(halted["standby"], false);
  close(connection_);
  Accept();
  EXPECT_EQ(hello_["running"][0]["stopped"], true) << "to a sidecar that has not heard it";
  kill(worker, SIGCONT);
  EXPECT_EQ(Await("continued")["incarnation"], 1);
  close(connection_);
  Accept();
  EXPECT_EQ(hello_["running"][0]["stopped"], false);
  Send({{"t", "stop"}, {"graceSeconds", 0}});
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(LauncherTest, AStandbyThatASignalStoppedTakesNobodysPlace) {
  Listen();
  Start("exec sleep 1000", {"RINGMASTER_STANDBYS=1"});
  Accept();
  json worker = Await("started"), standby = Await("started");
  if (worker["standby"] == true) std::swap(worker, standby);
  kill(standby["pid"], SIGSTOP);
  const json halted = Await("halted");
  EXPECT_EQ(halted["standby"], true);
  EXPECT_EQ(halted["incarnation"], 1);
  kill(worker["pid"], SIGKILL);
  const json next = AwaitOneOf({"promoted", "started"});
  EXPECT_EQ(next["t"], "started");
  EXPECT_EQ(next["slot"], 0);
  Send({{"t", "stop"}, {"graceSeconds", 0}});
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(LauncherTest, ADroppedWorkerIsStartedAgainAndNobodysFault) {
  Listen();
  Start("[ $RINGMASTER_INCARNATION = 1 ] && exit 79; exec sleep 1000");
  Accept();
  const json exited = Await("exited");
  EXPECT_EQ(exited["restarting"], true);
  EXPECT_EQ(exited["byUs"], true);
  EXPECT_TRUE(Eventually([&] { return Await("started")["incarnation"] == 2; }));
  Send({{"t", "stop"}, {"graceSeconds", 0}});
  ExitCode();
}

TEST_F(LauncherTest, SaysWhatIsWrongWithAVariable) {
  StartCommand({"true"}, {"RINGMASTER_SLOTS=zero"});
  EXPECT_EQ(ExitCode(), 2);
  EXPECT_EQ(Log().rfind("ringmaster-launcher: error: RINGMASTER_SLOTS", 0), 0u) << Log();
}

TEST_F(LauncherTest, GpusThatCannotBeSharedOutAreRefused) {
  const std::string own = R"(RINGMASTER_COLLECTIVES={"visibleGpus":"Own"})";
  StartCommand({"true"}, {"RINGMASTER_SLOTS=2", "CUDA_VISIBLE_DEVICES=0", own});
  EXPECT_NE(ExitCode(), 0);
  EXPECT_NE(Log().find("CUDA_VISIBLE_DEVICES is '0', must name 2 or more"), std::string::npos);
  StartCommand({"true"}, {"RINGMASTER_SLOTS=2", "RINGMASTER_STANDBYS=1", own});
  EXPECT_NE(ExitCode(), 0);
  EXPECT_NE(Log().find("standbyPerPod must be 0"), std::string::npos);
}

}  // namespace
}  // namespace ringmaster::launcher
