// Jobs of real sidecars and launchers with fake workers, and a fake operator in this process.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/ring_key/ring_key.h"
#include "common/tls/certificate.h"
#include "sidecar/app/testing/heartbeat_forger.h"
#include "sidecar/app/testing/sidecar_process_fixture.h"

namespace ringmaster::app {
namespace {

TEST_F(SidecarProcessTest, TheFirstViewHasAllThatAreReady) {
  StartJob(3);
  EXPECT_GT(AwaitView({0, 1, 2}, 3), 0u);
  EXPECT_TRUE(Eventually([&] { return Get(operator_->HttpOf("uid-1"), "/readyz") == "ok\n"; }));
  EXPECT_EQ(Get(operator_->HttpOf("uid-1"), "/healthz"), "ok\n");
  std::string metrics = Get(operator_->HttpOf("uid-1"), "/metrics");
  EXPECT_NE(metrics.find("ringmaster_sidecar_world_size{"), std::string::npos) << metrics;
}

TEST_F(SidecarProcessTest, StatusIsForThoseWhoHaveTheJobsToken) {
  ring_key_ = ring_key::MakeRandom();
  ASSERT_TRUE(ring_key::WriteFile(dir_ + "/ring.key", ring_key_));
  StartJob(2, {"RINGMASTER_RING_KEY_FILE=" + dir_ + "/ring.key"});
  ASSERT_GT(AwaitView({0, 1}, 2), 0u) << "it is asked with the token";
  const std::string http = operator_->HttpOf("uid-0");
  for (const char* header : {"Host: x", "Ringmaster-Token: 0", "Authorization: Bearer x"}) {
    EXPECT_EQ(Get(http, "/status", header),
              "the header Ringmaster-Token has to have the job's token\n");
  }
  EXPECT_EQ(Get(http, "/healthz"), "ok\n");
  EXPECT_NE(Get(http, "/metrics"), "");
}

// A stranger on the machine takes the heartbeat port of a sidecar that has died, and answers.
TEST_F(SidecarProcessTest, HeartbeatsOfWhoDoesNotHoldTheJobsKeyKeepNoPodAlive) {
  ring_key_ = ring_key::MakeRandom();
  ASSERT_TRUE(ring_key::WriteFile(dir_ + "/ring.key", ring_key_));
  StartJob(3, {"RINGMASTER_RING_KEY_FILE=" + dir_ + "/ring.key"});
  ASSERT_GT(AwaitView({0, 1, 2}, 3), 0u);
  const json pods = Status(pods_[0])["view"]["pods"];
  std::string address;
  for (const json& pod : pods) {
    EXPECT_EQ(pod.value("provesHeartbeats", false), true) << pod;
    if (pod["uid"] == "uid-2") address = pod["heartbeat"];
  }
  Kill(&pods_[2].sidecar);
  const HeartbeatForger forger(address, "uid-2");
  EXPECT_GT(AwaitView({0, 1}, 2), 0u);
  EXPECT_TRUE(Eventually([&] {
    const std::string metrics = Get(operator_->HttpOf("uid-0"), "/metrics");
    const size_t at = metrics.find("\nringmaster_sidecar_heartbeats_refused{");
    const size_t value = metrics.find("} ", at);
    return at != metrics.npos && std::atof(metrics.c_str() + value + 2) > 0;
  }));
  EXPECT_NE(LogOf(pods_[0]).find("heartbeat refused"), std::string::npos);
}

TEST_F(SidecarProcessTest, WithoutTlsSidecarsMeetWhereNoOtherUserComes) {
  StartJob(2);
  ASSERT_GT(AwaitView({0, 1}, 2), 0u);
  const json view = Status(pods_[0])["view"];
  for (const json& pod : view["pods"]) {
    const std::string socket = dir_ + "/" + pod["uid"].get<std::string>() + "/peer";
    EXPECT_EQ(pod["address"], "unix:" + socket);
    EXPECT_TRUE(std::filesystem::is_socket(socket));
  }
}

TEST_F(SidecarProcessTest, AKilledWorkerLeavesAndItsRestartJoins) {
  StartJob(3);
  uint64_t first = AwaitView({0, 1, 2}, 3);
  for (int victim : {2, 0}) {
    auto killed = Clock::now();
    KillWorker(pods_[victim]);
    ASSERT_TRUE(Eventually([&] { return operator_->ReportedAfter(first) != Clock::time_point{}; }));
    std::cout << "kill of a worker to its successor view: "
              << std::chrono::duration<double, std::milli>(operator_->ReportedAfter(first) - killed)
                     .count()
              << " ms\n";
    first = AwaitView({0, 1, 2}, 3, first + 1);
    ASSERT_GT(first, 0u);
    EXPECT_EQ(Status(pods_[victim])["workers"][0]["incarnation"], 2);
    json rebuild = LastRebuild(pods_[1]);
    EXPECT_TRUE(rebuild["planned"]) << rebuild;
    EXPECT_EQ(rebuild["joined"], json::array({"job-worker-" + std::to_string(victim)})) << rebuild;
    EXPECT_EQ(rebuild["seconds"]["redo"], 0.002) << "figures of the workers are kept: " << rebuild;
  }
  EXPECT_EQ(operator_->exit_codes(), (std::vector<int>{137, 137}));
}

TEST_F(SidecarProcessTest, AStandbyTakesTheDeadWorkersPlace) {
  StartJob(2, {"RINGMASTER_STANDBYS=1"});
  uint64_t first = AwaitView({0, 1}, 2);
  ASSERT_TRUE(Eventually([&] { return Status(pods_[1])["workers"].size() == 2; }));
  pid_t standby = WorkerPid(pods_[1], -1);
  KillWorker(pods_[1]);
  EXPECT_GT(AwaitView({0, 1}, 2, first + 1), 0u);
  EXPECT_EQ(WorkerPid(pods_[1]), standby);
}

TEST_F(SidecarProcessTest, APodOfSeveralSlotsStaysWhenOneWorkerDies) {
  StartJob(2, {"RINGMASTER_SLOTS=2"});
  uint64_t first = AwaitView({0, 1}, 4);
  KillWorker(pods_[1], 1);
  EXPECT_GT(AwaitView({0, 1}, 4, first + 1), 0u);
}

TEST_F(SidecarProcessTest, ASidecarThatIsRestartedAtOnceGoesOnInTheSameView) {
  StartJob(3);
  uint64_t first = AwaitView({0, 1, 2}, 3);
  const int victim = CoordinatorIndex();
  ASSERT_GE(victim, 0);
  const std::string http = operator_->HttpOf(pods_[victim].uid);
  const pid_t worker = WorkerPid(pods_[victim]);
  Kill(&pods_[victim].sidecar);
  StartSidecar(&pods_[victim]);  // as the kubelet does
  EXPECT_EQ(AwaitView({0, 1, 2}, 3), first);
  EXPECT_EQ(operator_->HttpOf(pods_[victim].uid), http) << "the view tells where it listens";
  EXPECT_TRUE(Eventually([&] { return WorkerPid(pods_[victim]) == worker; }));
  EXPECT_EQ(CoordinatorIndex(), victim);
  const json step = Status(pods_[victim])["progress"]["step"];
  EXPECT_TRUE(Eventually([&] { return Status(pods_[victim])["progress"]["step"] > step; }))
      << "its worker has connected again";
  KillWorker(pods_[(victim + 1) % 3]);
  EXPECT_GT(AwaitView({0, 1, 2}, 3, first + 1), 0u) << "it still coordinates";
}

TEST_F(SidecarProcessTest, APodWhoseSidecarStaysAwayIsDroppedAndRejoinsLater) {
  StartJob(3);
  uint64_t first = AwaitView({0, 1, 2}, 3);
  int victim = CoordinatorIndex();
  ASSERT_GE(victim, 0);
  std::vector<int> survivors;
  for (int i : {0, 1, 2}) {
    if (i != victim) survivors.push_back(i);
  }
  auto killed = Clock::now();
  Kill(&pods_[victim].sidecar);
  EXPECT_GT(AwaitView(survivors, 2, first), 0u);
  std::cout
      << "kill of the coordinator's sidecar to its successor view: "
      << std::chrono::duration<double, std::milli>(operator_->ReportedAfter(first) - killed).count()
      << " ms\n";
  StartSidecar(&pods_[victim]);  // it reloads its state, is told that it was dropped, rejoins
  EXPECT_GT(AwaitView({0, 1, 2}, 3, first + 1), 0u);
}

TEST_F(SidecarProcessTest, APodThatFallsSilentIsDroppedAndRejoinsWhenItWakes) {
  StartJob(3);
  uint64_t first = AwaitView({0, 1, 2}, 3);
  const std::vector<pid_t> all = {pods_[2].sidecar, pods_[2].launcher, WorkerPid(pods_[2])};
  auto stopped = Clock::now();
  for (pid_t pid : all) ASSERT_EQ(kill(pid, SIGSTOP), 0);
  EXPECT_GT(AwaitView({0, 1}, 2, first), 0u);
  std::cout << "stop of a pod to its successor view: "
            << std::chrono::duration<double, std::milli>(operator_->ReportedAfter(first) - stopped)
                   .count()
            << " ms\n";
  for (pid_t pid : all) kill(pid, SIGCONT);
  EXPECT_GT(AwaitView({0, 1, 2}, 3, first + 1), 0u);
}

TEST_F(SidecarProcessTest, ASidecarThatLostItsStateIsANewMemberThoughItsClockWasSetBack) {
  StartJob(3);
  const uint64_t first = AwaitView({0, 1, 2}, 3);
  Kill(&pods_[2].sidecar);
  const std::string ports = pods_[2].dir + "/ports.json";
  std::ifstream in(ports);
  json before = json::parse(in, nullptr, false);
  ASSERT_TRUE(before.is_object());
  // As if the former incarnation had begun in a time that is yet to come.
  const uint64_t future = before["incarnation"].get<uint64_t>() + 1'000'000'000;
  before["incarnation"] = future;
  std::ofstream(ports) << before.dump();
  std::filesystem::remove(pods_[2].dir + "/membership.json");
  StartSidecar(&pods_[2]);
  ASSERT_GT(AwaitView({0, 1, 2}, 3, first + 1), 0u);
  uint64_t incarnation = 0;
  const json pods = Status(pods_[0])["view"]["pods"];
  for (const json& pod : pods)
    if (pod["uid"] == "uid-2") incarnation = pod["incarnation"];
  EXPECT_EQ(incarnation, future + 1);
}

TEST_F(SidecarProcessTest, OneOfTwoPodsGoesOnByTheRecord) {
  StartJob(2);
  uint64_t first = AwaitView({0, 1}, 2);
  auto killed = Clock::now();
  KillPod(&pods_[0]);
  EXPECT_GT(AwaitView({1}, 1, first), 0u);
  std::cout
      << "kill of one of two pods to its successor view: "
      << std::chrono::duration<double, std::milli>(operator_->ReportedAfter(first) - killed).count()
      << " ms\n";
}

TEST_F(SidecarProcessTest, SigtermDrainsByPlanAndIsNoSuccess) {
  StartJob(3);
  uint64_t first = AwaitView({0, 1, 2}, 3);
  kill(pods_[0].launcher, SIGTERM);  // on a cluster the worker container gets it first
  uint64_t second = AwaitView({1, 2}, 2, first);
  EXPECT_GT(second, 0u);
  json rebuild = LastRebuild(pods_[1]);
  EXPECT_EQ(rebuild["reason"], "PodDrained");
  EXPECT_TRUE(rebuild["planned"]);
  EXPECT_EQ(ExitCode(&pods_[0].launcher), 128 + SIGTERM);
  kill(pods_[0].sidecar, SIGTERM);
  EXPECT_EQ(ExitCode(&pods_[0].sidecar), 0);
  EXPECT_FALSE(std::filesystem::exists(pods_[0].dir + "/s"));

  kill(pods_[1].sidecar, SIGTERM);  // in local mode both get it at once
  kill(pods_[1].launcher, SIGTERM);
  EXPECT_GT(AwaitView({2}, 1, second), 0u);
  EXPECT_EQ(ExitCode(&pods_[1].launcher), 128 + SIGTERM);
  EXPECT_EQ(ExitCode(&pods_[1].sidecar), 0);

  kill(pods_[2].sidecar, SIGTERM);  // alone, and the last one has nobody to leave to
  EXPECT_EQ(ExitCode(&pods_[2].launcher), 128 + SIGTERM);
  EXPECT_EQ(ExitCode(&pods_[2].sidecar), 0);
}

TEST_F(SidecarProcessTest, TheOperatorDrainsAPodAndANewOneJoins) {
  StartJob(2);
  uint64_t first = AwaitView({0, 1}, 2);
  operator_->Drain({"uid-1"}, "ScaleDown");
  uint64_t second = AwaitView({0}, 1, first);
  EXPECT_GT(second, 0u);
  EXPECT_EQ(ExitCode(&pods_[1].launcher), 0);
  AddPod();
  EXPECT_GT(AwaitView({0, 2}, 2, second), 0u);
  EXPECT_EQ(LastRebuild(pods_[0])["reason"], "PodJoined");
}

TEST_F(SidecarProcessTest, RecoversAndRejoinsWithTheOperatorAway) {
  StartJob(3);
  uint64_t first = AwaitView({0, 1, 2}, 3);
  operator_->Stop();
  KillWorker(pods_[1]);
  uint64_t second = AwaitView({0, 1, 2}, 3, first + 1);
  EXPECT_GT(second, 0u);
  operator_->Start();
  EXPECT_TRUE(Eventually([&] {
    return operator_->ReportedAfter(second - 1) != Clock::time_point{};
  })) << "what the operator missed is told again";
}

TEST_F(SidecarProcessTest, AJobThatFinishesRestartsNobodyAndEndsWithZero) {
  StartJob(2, {"RINGMASTER_STANDBYS=1"});
  AwaitView({0, 1}, 2);
  for (PodProcesses& pod : pods_) KillWorker(pod, 0, SIGUSR1);
  for (PodProcesses& pod : pods_) EXPECT_EQ(ExitCode(&pod.launcher), 0);
  EXPECT_TRUE(Eventually([&] { return operator_->finished() == 2; }));
  EXPECT_TRUE(Eventually([&] { return Status(pods_[0]).value("state", "") == "Finished"; }));
  for (PodProcesses& pod : pods_) {
    kill(pod.sidecar, SIGTERM);
    EXPECT_EQ(ExitCode(&pod.sidecar), 0);
  }
}

TEST_F(SidecarProcessTest, WithTlsAJobTrainsLosesAWorkerAndASidecarAndGoesOn) {
  PrepareTls(3);
  StartJob(3);
  uint64_t first = AwaitView({0, 1, 2}, 3);
  ASSERT_GT(first, 0u);
  KillWorker(pods_[1]);
  first = AwaitView({0, 1, 2}, 3, first + 1);
  ASSERT_GT(first, 0u);
  Kill(&pods_[2].sidecar);
  EXPECT_GT(AwaitView({0, 1}, 2, first), 0u);
  StartSidecar(&pods_[2]);
  EXPECT_GT(AwaitView({0, 1, 2}, 3, first + 1), 0u);
}

TEST_F(SidecarProcessTest, APodWithACertificateOfAnotherJobOrAuthorityNeverComesIn) {
  PrepareTls(4);
  WriteTls(dir_ + "/uid-2/tls",
           *tls::MakeAuthority(std::chrono::system_clock::now(), std::chrono::hours(1)),
           tls::JobName("job-uid"));
  WriteTls(dir_ + "/uid-3/tls", authority_, "job.example.com");
  StartJob(2);
  ASSERT_GT(AwaitView({0, 1}, 2), 0u);
  AddPod();
  AddPod();
  EXPECT_TRUE(Eventually([&] {
    return LogOf(pods_[2]).find(
               "certificate of the server is refused: it was signed by another "
               "authority") != std::string::npos;
  }));
  EXPECT_EQ(ExitCode(&pods_[3].sidecar), 1);
  EXPECT_NE(LogOf(pods_[3]).find("tls.crt is for job.example.com, and not for job-uid.job."),
            std::string::npos)
      << LogOf(pods_[3]);
  EXPECT_EQ(operator_->HttpOf("uid-2"), "");
}

TEST_F(SidecarProcessTest, ASidecarWhoseCertificateCanNotBeReadSaysWhyAndEnds) {
  operator_tls_ = "on";
  env_ = {};
  PodProcesses pod{.uid = "uid-0", .dir = dir_ + "/uid-0"};
  std::filesystem::create_directory(pod.dir);
  pods_.push_back(pod);
  StartSidecar(&pods_.back());
  EXPECT_EQ(ExitCode(&pods_.back().sidecar), 1);
  EXPECT_NE(LogOf(pods_.back()).find("/uid-0/tls/ca.crt is not there"), std::string::npos)
      << LogOf(pods_.back());
}

TEST_F(SidecarProcessTest, AProbeFindsTheSidecarWhateverPortItTook) {
  StartJob(1);
  ASSERT_GT(AwaitView({0}, 1), 0u);
  const auto probe = [&](const std::string& path) {
    pid_t pid = Spawn(pods_[0], {SIDECAR_BINARY, "probe", path});
    return ExitCode(&pid);
  };
  EXPECT_EQ(probe("/healthz"), 0);
  EXPECT_TRUE(Eventually([&] { return probe("/readyz") == 0; }));
  EXPECT_EQ(probe("/nothing"), 1);
  Kill(&pods_[0].sidecar);
  EXPECT_EQ(probe("/healthz"), 1);
}

TEST_F(SidecarProcessTest, SaysWhichSlotsNeverCalledInit) {
  env_ = {"RINGMASTER_SLOTS=2", "RINGMASTER_INIT_TIMEOUT_SECONDS=1"};
  operator_ = std::make_unique<ringmaster::app::testing::FakeOperator>(dir_ + "/op", 1, 1);
  operator_->Start();
  PodProcesses pod{.uid = "uid-0", .dir = dir_ + "/uid-0"};
  std::filesystem::create_directory(pod.dir);
  pods_.push_back(pod);
  StartSidecar(&pods_.back());
  pods_.back().launcher = Spawn(
      pods_.back(),
      {LAUNCHER_BINARY, "--", "/bin/sh", "-c",
       std::string("[ $RINGMASTER_SLOT = 1 ] && exec /bin/sleep 1000; exec ") + WORKER_BINARY});
  EXPECT_TRUE(Eventually([&] {
    std::ifstream log(pods_.back().dir + "/log");
    std::string text((std::istreambuf_iterator<char>(log)), {});
    return text.find("slots_without_init=1\n") != std::string::npos;
  }));
  EXPECT_EQ(Status(pods_.back())["state"], "Waiting");
}

TEST_F(SidecarProcessTest, EightPodsLoseAndRegainWorkers) {
  StartJob(8);
  uint64_t first = AwaitView({0, 1, 2, 3, 4, 5, 6, 7}, 8);
  auto killed = Clock::now();
  KillWorker(pods_[5]);
  uint64_t second = AwaitView({0, 1, 2, 3, 4, 5, 6, 7}, 8, first + 1);
  EXPECT_GT(second, 0u);
  std::cout
      << "8 pods, kill of a worker to its successor view: "
      << std::chrono::duration<double, std::milli>(operator_->ReportedAfter(first) - killed).count()
      << " ms\n";
}

}  // namespace
}  // namespace ringmaster::app
