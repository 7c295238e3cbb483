#include "collectives/elastic/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <string>

#include "collectives/elastic/network_interface.h"

namespace ringmaster::elastic {
namespace {

Status WithCollectives(const std::string& text, WorkerOptions* options) {
  setenv("RINGMASTER_COLLECTIVES", text.c_str(), 1);
  const Status status = OptionsFromEnvironment(options);
  unsetenv("RINGMASTER_COLLECTIVES");
  return status;
}

TEST(WorkerOptionsTest, TakeTheSizeOfFusedTensors) {
  WorkerOptions options;
  EXPECT_TRUE(
      WithCollectives(R"({"fusionThresholdBytes": 4096, "encryption": "On"})", &options).ok());
  EXPECT_TRUE(options.encrypt);
  EXPECT_EQ(options.fusion_bytes, 4096u);
}

TEST(WorkerOptionsTest, TakeTheBackend) {
  const std::pair<std::string, BackendChoice> cases[] = {{"Auto", BackendChoice::kAuto},
                                                         {"Cpu", BackendChoice::kCpu},
                                                         {"Nccl", BackendChoice::kNccl},
                                                         {"Mpi", BackendChoice::kAuto}};
  for (const auto& [name, choice] : cases) {
    WorkerOptions options;
    EXPECT_TRUE(WithCollectives(R"({"backend": ")" + name + "\"}", &options).ok());
    EXPECT_EQ(options.backend, choice) << name;
    // What counts as something else than it says is told.
    EXPECT_EQ(options.remarks.size(), name == "Mpi" ? 1u : 0u);
  }
}

TEST(WorkerOptionsTest, WhatIsNoneIsNamed) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const std::pair<std::string, std::string> cases[] = {
      {"{", "RINGMASTER_COLLECTIVES: not JSON: {"},
      {"[]", "RINGMASTER_COLLECTIVES is not a JSON object: []"},
      {R"({"backend": "None"})",
       "spec.collectives.backend is None: this job's processes are to use collectives of their "
       "own; for Ringmaster's set it to Auto"},
      {R"({"encryption": "on"})",
       "RINGMASTER_COLLECTIVES: encryption is \"on\", allowed is \"On\" or \"Off\""},
      {R"({"backend": "nccl"})",
       "RINGMASTER_COLLECTIVES: backend is \"nccl\", allowed is \"Auto\", \"Cpu\" or \"Nccl\""},
      {R"({"fusionThresholdBytes": -1})",
       "RINGMASTER_COLLECTIVES: fusionThresholdBytes is -1, allowed is a number of bytes, 0 for no "
       "fusion"},
      {R"({"fusionThresholdBytes": )" + deep + "}",
       "RINGMASTER_COLLECTIVES: nested deeper than 64 levels"},
  };
  for (const auto& [text, error] : cases) {
    WorkerOptions options;
    const Status status = WithCollectives(text, &options);
    EXPECT_EQ(status.code(), RM_ERR_INVALID);
    EXPECT_EQ(status.message(), error);
  }
}

using Variables = std::map<std::string, std::string>;

Status WithVariables(const Variables& variables, WorkerOptions* options) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  const Status status = OptionsFromEnvironment(options);
  for (const auto& [name, value] : variables) unsetenv(name.c_str());
  return status;
}

TEST(WorkerOptionsTest, WithoutASidecarAVariableNamesTheBackend) {
  const Variables launched = {{"PMI_FD", "7"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  const std::pair<std::string, BackendChoice> cases[] = {{"auto", BackendChoice::kAuto},
                                                         {"cpu", BackendChoice::kCpu},
                                                         {"nccl", BackendChoice::kNccl},
                                                         {"mpi", BackendChoice::kMpi}};
  for (const auto& [name, choice] : cases) {
    WorkerOptions options;
    Variables variables = launched;
    variables["RINGMASTER_BACKEND"] = name;
    variables["RINGMASTER_MPI_LIBRARY"] = "/opt/plugin.so";
    EXPECT_TRUE(WithVariables(variables, &options).ok());
    EXPECT_EQ(options.backend, choice) << name;
    EXPECT_EQ(options.mpi_library, "/opt/plugin.so");
    EXPECT_TRUE(options.remarks.empty());
  }
  WorkerOptions alone;
  EXPECT_TRUE(WithVariables({{"RINGMASTER_BACKEND", "mpi"}}, &alone).ok());
  ASSERT_EQ(alone.remarks.size(), 1u);
  EXPECT_THAT(alone.remarks[0],
              testing::HasSubstr("a world of one, in which MPI has nothing to do"));
}

TEST(WorkerOptionsTest, ABackendThatIsNoneOrIsNotTheJobsIsRefused) {
  WorkerOptions options;
  EXPECT_EQ(WithVariables({{"RINGMASTER_BACKEND", "gloo"}}, &options).message(),
            "RINGMASTER_BACKEND is 'gloo', allowed is 'auto', 'cpu', 'nccl' or 'mpi'");
  const Status status =
      WithVariables({{"RINGMASTER_BACKEND", "mpi"}, {"RINGMASTER_SOCKET", "/s"}}, &options);
  EXPECT_EQ(status.code(), RM_ERR_INVALID);
  EXPECT_THAT(status.message(),
              testing::HasSubstr("RINGMASTER_BACKEND is 'mpi', allowed is none here: this process "
                                 "belongs to a job, whose spec.collectives.backend counts"));
}

TEST(WorkerOptionsTest, StallsAreToldAfterAMinuteOrAsHorovodsVariablesSay) {
  const std::string check = "HOROVOD_STALL_CHECK_TIME_SECONDS",
                    end = "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS",
                    off = "HOROVOD_STALL_CHECK_DISABLE";
  struct Case {
    Variables variables;
    int tell, give_up;
  };
  const Case cases[] = {
      {{}, 60, 0},
      {{{check, "5"}}, 5, 0},
      {{{check, "0"}}, 0, 0},
      {{{check, "0"}, {end, "9"}}, 0, 0},
      {{{off, "1"}, {end, "9"}}, 0, 0},
      {{{off, "0"}, {end, "90"}}, 60, 90},
      {{{end, "9"}}, 9, 9},
  };
  for (const Case& c : cases) {
    WorkerOptions options;
    ASSERT_TRUE(WithVariables(c.variables, &options).ok());
    EXPECT_EQ(options.stall.tell, std::chrono::seconds(c.tell));
    EXPECT_EQ(options.stall.give_up, std::chrono::seconds(c.give_up));
  }
  WorkerOptions options;
  EXPECT_EQ(
      WithVariables({{check, "a minute"}}, &options).message(),
      "HOROVOD_STALL_CHECK_TIME_SECONDS is 'a minute', allowed is a number from 0 to 1000000");
  EXPECT_EQ(WithVariables({{off, "yes"}}, &options).message(),
            "HOROVOD_STALL_CHECK_DISABLE is 'yes', allowed is a number from 0 to 1");
}

TEST(WorkerOptionsTest, HorovodsFusionThresholdCountsUnlessTheJobHasAnotherThanTheDefault) {
  const std::string threshold = "HOROVOD_FUSION_THRESHOLD", job = "RINGMASTER_COLLECTIVES";
  struct Case {
    Variables variables;
    size_t bytes;
    std::vector<std::string> remarks;
  };
  const Case cases[] = {
      {{}, size_t{64} << 20, {}},
      {{{threshold, "1024"}}, 1024, {}},
      {{{threshold, "0"}}, 0, {}},
      {{{threshold, "1024"}, {job, R"({"fusionThresholdBytes": 67108864})"}}, 1024, {}},
      {{{job, R"({"fusionThresholdBytes": 4096})"}}, 4096, {}},
      {{{threshold, "4096"}, {job, R"({"fusionThresholdBytes": 4096})"}}, 4096, {}},
      {{{threshold, "1024"}, {job, R"({"fusionThresholdBytes": 4096})"}},
       4096,
       {"HOROVOD_FUSION_THRESHOLD is 1024 and is not followed: the job's fusionThresholdBytes is "
        "4096"}},
  };
  for (const Case& c : cases) {
    WorkerOptions options;
    const Status status = WithVariables(c.variables, &options);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(options.fusion_bytes, c.bytes);
    EXPECT_EQ(options.remarks, c.remarks);
  }
  WorkerOptions options;
  EXPECT_EQ(WithVariables({{threshold, "64 MB"}}, &options).message(),
            "HOROVOD_FUSION_THRESHOLD is '64 MB', allowed is a number from 0 to 1073741824");
}

TEST(WorkerOptionsTest, OfHorovodsOtherTuningEachThatIsSetGetsALineThatSaysWhy) {
  using ::testing::ElementsAre;
  using ::testing::StartsWith;
  WorkerOptions options;
  ASSERT_TRUE(WithVariables({{"HOROVOD_CYCLE_TIME", "3.5"},
                             {"HOROVOD_HIERARCHICAL_ALLREDUCE", "0"},
                             {"HOROVOD_AUTOTUNE", "1"}},
                            &options)
                  .ok());
  EXPECT_THAT(options.remarks,
              ElementsAre(StartsWith("HOROVOD_CYCLE_TIME has no meaning here and is not read: "),
                          StartsWith("HOROVOD_HIERARCHICAL_ALLREDUCE has no meaning here"),
                          StartsWith("HOROVOD_AUTOTUNE has no meaning here")));
  WorkerOptions off;
  ASSERT_TRUE(WithVariables({{"HOROVOD_AUTOTUNE", "0"}}, &off).ok());
  EXPECT_TRUE(off.remarks.empty()) << "off is what it is";
}

TEST(WorkerOptionsTest, TheNewestEventsAreKeptUnlessAVariableSaysNo) {
  WorkerOptions options;
  ASSERT_TRUE(WithVariables({}, &options).ok());
  EXPECT_TRUE(options.keep_recent);
  ASSERT_TRUE(WithVariables({{"RINGMASTER_LIVE_TIMELINE", "0"}}, &options).ok());
  EXPECT_FALSE(options.keep_recent);
}

TEST(WorkerOptionsTest, TheGpuIsWatchedUnlessAVariableSaysNo) {
  WorkerOptions options;
  ASSERT_TRUE(WithVariables({}, &options).ok());
  EXPECT_TRUE(options.watch_gpu);
  ASSERT_TRUE(WithVariables({{"RINGMASTER_GPU_HEALTH", "0"}}, &options).ok());
  EXPECT_FALSE(options.watch_gpu);
}

TEST(WorkerOptionsTest, ListenWhereTheInterfaceIsThatAVariableNames) {
  const std::string ours = "RINGMASTER_SOCKET_IFNAME", nccl = "NCCL_SOCKET_IFNAME",
                    ip = "RINGMASTER_POD_IP";
  const std::pair<Variables, std::string> cases[] = {
      {{}, "127.0.0.1"},
      {{{ip, "10.0.0.9"}}, "10.0.0.9"},
      {{{ours, "lo"}, {ip, "10.0.0.9"}}, "127.0.0.1"},
      {{{ours, "=lo"}, {ip, "10.0.0.9"}}, "127.0.0.1"},
      {{{ours, "none,l"}, {ip, "10.0.0.9"}}, "127.0.0.1"},
      {{{nccl, "lo"}, {ip, "10.0.0.9"}}, "10.0.0.9"},
      {{{nccl, "lo"}, {ip, "127.0.0.7"}}, "127.0.0.1"},
      {{{ours, "lo"}, {nccl, "none"}}, "127.0.0.1"},
      {{{nccl, "ib"}, {ip, "10.0.0.9"}}, "10.0.0.9"},
      {{{nccl, "^none"}, {ip, "10.0.0.9"}}, "10.0.0.9"},
      {{{"RINGMASTER_BIND_WORKER", "10.0.0.8"}, {ours, "lo"}}, "10.0.0.8"},
      {{{ip, "fd00::9"}}, "fd00::9"},
  };
  for (const auto& [variables, address] : cases) {
    WorkerOptions options;
    const Status status = WithVariables(variables, &options);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(options.bind, address);
  }
  // After `=` the name must match as a whole, so "l" is not the loopback; and no name begins with
  // "none".
  const std::pair<std::string, std::string> none[] = {{"HOROVOD_GLOO_IFACE", "=l"}, {ours, "none"}};
  for (const auto& [name, choice] : none) {
    WorkerOptions options;
    const Status status = WithVariables({{name, choice}}, &options);
    EXPECT_EQ(status.code(), RM_ERR_INVALID);
    EXPECT_EQ(
        status.message().rfind(name + " is '" + choice + "': no interface with an IP address ", 0),
        0u)
        << status.message();
    EXPECT_NE(status.message().find("there are: lo"), std::string::npos) << status.message();
  }
  WorkerOptions options;
  if (WithVariables({{ours, "^none"}}, &options).ok()) {
    EXPECT_NE(options.bind, "127.0.0.1");
  }
}

TEST(WorkerOptionsTest, AnInterfaceWithBothFamiliesGivesTheAddressOfThePodsFamily) {
  const Variables loopback = {{"RINGMASTER_SOCKET_IFNAME", "lo"}};
  WorkerOptions options;
  ASSERT_TRUE(WithVariables(loopback, &options).ok());
  EXPECT_EQ(options.bind, "127.0.0.1");
  Variables of_ipv6 = loopback;
  of_ipv6["RINGMASTER_POD_IP"] = "fd00::9";
  ASSERT_TRUE(WithVariables(of_ipv6, &options).ok());
  // A machine without IPv6 has no other address.
  EXPECT_THAT(options.bind, testing::AnyOf("::1", "127.0.0.1"));
  EXPECT_EQ(FreePortOf("10.0.0.1"), "10.0.0.1:0");
  EXPECT_EQ(FreePortOf("::1"), "[::1]:0");
  EXPECT_EQ(FreePortOf("[::1]"), "[::1]:0");
}

}  // namespace
}  // namespace ringmaster::elastic
