// The launcher as a real process with shell scripts as workers, and this test as its sidecar.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "common/worker_link/frame.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::launcher {
namespace {

using nlohmann::json;
using worker_link::FrameReader;

std::chrono::steady_clock::time_point Deadline() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(20);
}

// Plain reads: a stream throws when the process goes while it is read.
bool Alive(pid_t pid) {
  int fd = open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[512];
  ssize_t got = read(fd, text, sizeof text);
  close(fd);
  std::string stat(text, got > 0 ? static_cast<size_t>(got) : 0);
  size_t end = stat.rfind(')');
  return end != std::string::npos && stat[end + 2] != 'Z';
}

bool Eventually(const std::function<bool()>& done) {
  for (auto deadline = Deadline(); std::chrono::steady_clock::now() < deadline; usleep(2000)) {
    if (done()) return true;
  }
  return false;
}

class LauncherTest : public testing::Test {
 protected:
  void SetUp() override {
    // What the launcher fails to kill comes to us, so that nothing hides from the test.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  void TearDown() override {
    if (launcher_ > 0) kill(launcher_, SIGKILL);
    if (connection_ >= 0) close(connection_);
    if (listener_ >= 0) close(listener_);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }

  std::string Path(const std::string& name) const { return dir_ + "/" + name; }

  void Listen() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    Path("s").copy(address.sun_path, sizeof address.sun_path - 1);
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener_, 4), 0);
  }

  // Runs `script` by sh as every worker. `env` are NAME=value pairs.
  void Start(const std::string& script, std::vector<std::string> env = {}) {
    StartCommand({"/bin/sh", "-c", script}, std::move(env));
  }
  void StartCommand(std::vector<std::string> command, std::vector<std::string> env = {}) {
    env.push_back("RINGMASTER_SOCKET=" + Path("s"));
    env.push_back("DIR=" + dir_);
    env.push_back(std::string("PATH=") + getenv("PATH"));
    command.insert(command.begin(), {LAUNCHER_BINARY, "--"});
    std::vector<char*> argv, envp;
    for (auto& text : command) argv.push_back(text.data());
    for (auto& text : env) envp.push_back(text.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    launcher_ = fork();
    if (launcher_ == 0) {
      dup2(open(Path("log").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600),
           STDERR_FILENO);
      execve(argv[0], argv.data(), envp.data());
      _exit(126);
    }
  }

  void Accept() {
    pollfd fd{listener_, POLLIN, 0};
    ASSERT_EQ(poll(&fd, 1, 20000), 1) << "the launcher does not connect";
    connection_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    reader_ = {};
    hello_ = Await("hello");
    ASSERT_EQ(hello_["role"], "launcher");
  }

  // The next frame of this type; others are dropped.
  json Await(const std::string& type) { return AwaitOneOf({type}); }
  json AwaitOneOf(const std::set<std::string>& types) {
    for (auto deadline = Deadline(); std::chrono::steady_clock::now() < deadline;) {
      json frame;
      while (reader_.Next(&frame) == FrameReader::Result::kFrame) {
        if (types.count(frame["t"]) != 0) return frame;
      }
      pollfd fd{connection_, POLLIN, 0};
      if (poll(&fd, 1, 1000) <= 0) continue;
      char buffer[4096];
      ssize_t got = recv(connection_, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      reader_.Feed({buffer, static_cast<size_t>(got)});
    }
    ADD_FAILURE() << "no frame " << *types.begin();
    return json::object({{"t", ""}, {"pid", 0}, {"incarnation", 0}, {"exitCode", -1}});
  }

  void Send(const json& frame) {
    std::string bytes = worker_link::EncodeFrame(frame);
    ASSERT_EQ(send(connection_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  // What launcher and workers have written to standard error.
  std::string Log() const {
    std::ifstream file(Path("log"));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  int ExitCode() {
    int status = 0;
    bool ended = Eventually([&] { return waitpid(launcher_, &status, WNOHANG) == launcher_; });
    EXPECT_TRUE(ended) << "the launcher does not end";
    launcher_ = -1;
    return ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  // The process ids that scripts have written into `name`, one a line.
  std::vector<pid_t> Pids(const std::string& name, size_t count) {
    std::vector<pid_t> pids;
    EXPECT_TRUE(Eventually([&] {
      pids.clear();
      std::ifstream file(Path(name));
      for (pid_t pid; file >> pid;) pids.push_back(pid);
      return pids.size() >= count;
    })) << name;
    return pids;
  }

  support::TempDir temporary_;
  const std::string dir_ = temporary_.path().string();
  pid_t launcher_ = -1;
  int listener_ = -1, connection_ = -1;
  FrameReader reader_;
  json hello_;
};

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
  Start("exit 0");
  Accept();
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

TEST_F(LauncherTest, LeavesNobodyBehindWhenTerminatedWithoutASidecar) {
  Start(kWithLoaders);
  std::vector<pid_t> kids = Pids("kids", 3);
  const pid_t worker = Pids("workers", 1)[0];  // it may be written after them
  kill(launcher_, SIGTERM);
  EXPECT_EQ(ExitCode(), 0);
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

// ---- Processes whose collectives are not ours: the launcher is the member of the view.

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
