#include "operator/kubelet/container_runner.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "tests/support/temp_dir.h"

namespace ringmaster::kubelet {
namespace {

using Phase = ContainerState::Phase;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Keeps the processes and probes that it is told of; what ends is waited for here.
struct Host : RunnerHost {
  void WatchProcess(pid_t pid, const std::string&) override { pids.push_back(pid); }
  Json Read(const kube::Resource&, const std::string&, const std::string&) override {
    return Json();
  }
  void ProbeHttp(const std::string&, const std::string&, int start, const std::string& host_port,
                 const std::string& path, milliseconds) override {
    probed = host_port + path;
    probed_start = start;
  }
  std::vector<pid_t> pids;
  std::string probed;
  int probed_start = 0;
};

class ContainerRunnerTest : public testing::Test {
 protected:
  ContainerRunnerTest() {
    options_.run_dir = temp_.path();
    options_.run_mark = "RINGMASTER_RUN=" + options_.run_dir.filename().string();
    options_.machine_env = {"PATH=/usr/bin:/bin"};
  }

  static Json Shell(const std::string& script) {
    return {{"name", "main"}, {"image", "any"}, {"command", {"sh", "-c", script}}};
  }
  // Waits for the newest process and hands its end on.
  void EndOf(ContainerRunner& container, bool pod_goes_on = true) {
    int status = 0;
    ASSERT_EQ(waitpid(host_.pids.back(), &status, 0), host_.pids.back());
    container.OnExit(host_.pids.back(), status, pod_goes_on, now_);
  }

  const support::TempDir temp_;
  RunnerOptions options_;
  Host host_;
  PodContext pod_{options_, host_,
                  Json{{"metadata", {{"name", "pod"}, {"namespace", "default"}, {"uid", "uid"}}},
                       {"spec", {{"restartPolicy", "OnFailure"}}}},
                  std::nullopt};
  Clock::time_point now_{seconds(1000)};
};

TEST_F(ContainerRunnerTest, TheFirstRestartComesAtOnceAndTheNextAfterALongerAndLongerWait) {
  ContainerRunner container(Shell("exit 3"), ContainerKind::kMain, &pod_);
  for (const milliseconds wait : {milliseconds(0), milliseconds(100), milliseconds(200)}) {
    container.Advance(now_);
    ASSERT_TRUE(container.running());
    pod_.next.reset();
    EndOf(container);
    EXPECT_EQ(pod_.next, now_ + wait);
    EXPECT_EQ(container.state().reason, "CrashLoopBackOff");
    now_ += wait;
  }
  EXPECT_EQ(container.state().restarts, 2);
  EXPECT_EQ(container.state().last_state["terminated"]["exitCode"], 3);
}

TEST_F(ContainerRunnerTest, ItIsDoneWhereThePolicyOrThePodsEndAllowsNoRestart) {
  ContainerRunner fine(Shell("exit 0"), ContainerKind::kMain, &pod_);
  fine.Advance(now_);
  EndOf(fine);
  EXPECT_TRUE(fine.state().done);
  EXPECT_EQ(fine.state().reason, "Completed");
  ContainerRunner failed(Shell("exit 1"), ContainerKind::kMain, &pod_);
  failed.Advance(now_);
  EndOf(failed, false);
  EXPECT_TRUE(failed.state().done);
  EXPECT_EQ(failed.state().exit_code, 1);
}

TEST_F(ContainerRunnerTest, WhatCantStartHasEndedWithTheReason) {
  pod_.pod["spec"]["restartPolicy"] = "Never";
  Json spec = Shell("");
  spec["command"] = {"/no/such/program"};
  ContainerRunner container(spec, ContainerKind::kMain, &pod_);
  container.Advance(now_);
  EXPECT_FALSE(container.running());
  EXPECT_TRUE(container.state().done);
  EXPECT_EQ(container.state().phase, Phase::kTerminated);
  EXPECT_EQ(container.state().reason, "ContainerCannotRun");
}

TEST_F(ContainerRunnerTest, AWaitForTheNextStartEndsWithThePod) {
  ContainerRunner container(Shell("exit 3"), ContainerKind::kMain, &pod_);
  container.Advance(now_);
  EndOf(container);
  EXPECT_EQ(container.state().phase, Phase::kWaiting);
  container.StopWaiting();
  EXPECT_TRUE(container.state().done);
  EXPECT_EQ(container.state().phase, Phase::kTerminated);
  EXPECT_EQ(container.state().reason, "Error");
}

TEST_F(ContainerRunnerTest, TermAndKillReachTheProcess) {
  ContainerRunner asked(Shell("exec sleep 60"), ContainerKind::kMain, &pod_);
  asked.Advance(now_);
  asked.SendTerm();
  EndOf(asked, false);
  EXPECT_EQ(asked.state().exit_code, 128 + SIGTERM);
  ContainerRunner killed(Shell("exec sleep 60"), ContainerKind::kMain, &pod_);
  killed.Advance(now_);
  killed.Kill();
  EndOf(killed, false);
  EXPECT_EQ(killed.state().exit_code, 128 + SIGKILL);
}

TEST_F(ContainerRunnerTest, WhatComesNextWaitsForAnInitContainersEndAndASidecarsStart) {
  ContainerRunner init(Shell("exit 0"), ContainerKind::kInit, &pod_);
  EXPECT_FALSE(init.Advance(now_));
  EndOf(init);
  EXPECT_TRUE(init.Advance(now_));
  Json spec = Shell("exit 0");
  spec["startupProbe"] = {{"httpGet", {{"port", 8080}, {"path", "/up"}}}};
  ContainerRunner sidecar(spec, ContainerKind::kSidecar, &pod_);
  EXPECT_FALSE(sidecar.Advance(now_));
  EXPECT_EQ(host_.probed, "127.0.0.1:8080/up");
  sidecar.OnProbe(host_.probed_start + 1, true, now_);
  EXPECT_FALSE(sidecar.state().started) << "the answer is about another start";
  sidecar.OnProbe(host_.probed_start, true, now_);
  EXPECT_TRUE(sidecar.state().started);
  EXPECT_TRUE(sidecar.Advance(now_));
  EndOf(sidecar, false);
}

TEST_F(ContainerRunnerTest, ACommandsExitCodeAnswersAProbe) {
  Json spec = Shell("sleep 60");
  spec["readinessProbe"] = {{"exec", {{"command", {"sh", "-c", "exit 0"}}}}};
  ContainerRunner container(spec, ContainerKind::kMain, &pod_);
  container.Advance(now_);
  const pid_t main = host_.pids.front();
  ASSERT_EQ(host_.pids.size(), 2u);
  EXPECT_FALSE(container.state().ready);
  EndOf(container);
  EXPECT_TRUE(container.state().ready);
  EXPECT_TRUE(container.running());
  container.Kill();
  host_.pids.push_back(main);
  EndOf(container, false);
}

}  // namespace
}  // namespace ringmaster::kubelet
