#include "operator/app/operator_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ringmaster::app {
namespace {

using testing::HasSubstr;

class OperatorConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "rm-config-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::string File(const std::string& yaml) {
    std::ofstream(dir_ / "config.yaml") << yaml;
    return (dir_ / "config.yaml").string();
  }
  static tl::expected<OperatorConfig, ConfigExit> Parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "ringmaster-operator");
    return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
  }
  // What is said about a wrong command line; its exit code is 2.
  static std::string Refusal(const std::vector<const char*>& arguments) {
    const auto parsed = Parse(arguments);
    if (parsed) return "it was accepted";
    EXPECT_EQ(parsed.error().code, 2) << parsed.error().text;
    return parsed.error().text;
  }

  std::filesystem::path dir_;
};

TEST_F(OperatorConfigTest, FlagsWinOverTheFileAndTheFileOverDefaults) {
  const std::string file = File("workers: 5\nkubeQps: 12.5\nleaderElect: true\nlogFormat: json\n");
  const auto config = Parse({"--config", file.c_str(), "--workers", "7"});
  ASSERT_TRUE(config) << config.error().text;
  EXPECT_EQ(config->workers, 7);
  EXPECT_EQ(config->kube_qps, 12.5);
  EXPECT_TRUE(config->leader_elect);
  EXPECT_EQ(config->log_format, "json");
  EXPECT_EQ(config->kube_burst, 100);
}

TEST_F(OperatorConfigTest, AFlagCanTakeBackWhatTheFileSwitchesOn) {
  const std::string file = File("leaderElect: true\n");
  const auto config = Parse({"--config", file.c_str(), "--leader-elect=false"});
  ASSERT_TRUE(config) << config.error().text;
  EXPECT_FALSE(config->leader_elect);
  EXPECT_TRUE(Parse({"--leader-elect"})->leader_elect);
}

TEST_F(OperatorConfigTest, WrongFlagsAreNamedWithTheirValueAndWhatIsAllowed) {
  EXPECT_THAT(Refusal({"--workers", "0"}),
              HasSubstr("--workers: 0 is not allowed: an integer from 1 to 64"));
  EXPECT_THAT(Refusal({"--workers", "two"}), HasSubstr("--workers: \"two\" is not allowed"));
  EXPECT_THAT(Refusal({"--workers", "2.5"}), HasSubstr("--workers: 2.5 is not allowed"));
  EXPECT_THAT(Refusal({"--kube-qps", "-1"}), HasSubstr("a number from 0.1 to 10000"));
  EXPECT_THAT(Refusal({"--log-format", "xml"}),
              HasSubstr("--log-format: \"xml\" is not allowed: one of text, json"));
  EXPECT_THAT(Refusal({"--leader-elect=maybe"}), HasSubstr("true or false"));
  EXPECT_THAT(Refusal({"--health-listen", "8081"}),
              HasSubstr("--health-listen: \"8081\": allowed: host:port"));
  EXPECT_THAT(Refusal({"--metrics-listen", "0.0.0.0:99999"}), HasSubstr("host:port"));
  EXPECT_THAT(Refusal({"--listen", "somewhere"}), HasSubstr("or unix:/path"));
  EXPECT_THAT(Refusal({"--wrokers", "3"}), HasSubstr("--wrokers"));
  EXPECT_THAT(Refusal({"--config", "/nowhere/c.yaml"}), HasSubstr("No such file"));
}

TEST_F(OperatorConfigTest, WrongFilesAreNamedWithKeyValueAndWhatIsAllowed) {
  const struct {
    const char* yaml;
    const char* says;
  } cases[] = {
      {"worker: 3", "unknown key \"worker\": did you mean \"workers\"?"},
      {"kube-qps: 3", "did you mean \"kubeQps\"?"},
      {"colour: blue", "unknown key \"colour\": allowed are kubeconfig, listen"},
      {"workers: \"3\"", "workers: \"3\" is not allowed: an integer from 1 to 64"},
      {"workers: 99", "workers: 99 is not allowed"},
      {"workers: [1]", "workers: [1] is not allowed"},
      {"leaderElect: 1", "leaderElect: 1 is not allowed: true or false"},
      {"sidecarImage:", "sidecarImage: null is not allowed: a text"},
      {"sidecarImage: ''", "sidecarImage: \"\": allowed: a text that is not empty"},
      {"- workers", "not a mapping"},
      {"workers: 1\n---\nworkers: 2", "more than one"},
      {"workers: [", "line"},
  };
  for (const auto& c : cases) {
    const std::string file = File(c.yaml);
    const std::string refusal = Refusal({"--config", file.c_str()});
    EXPECT_THAT(refusal, HasSubstr(c.says)) << c.yaml;
    EXPECT_THAT(refusal, HasSubstr(file)) << c.yaml;
  }
}

TEST_F(OperatorConfigTest, TimesOfTheElectionHaveToFitTogether) {
  EXPECT_THAT(Refusal({"--renew-deadline-seconds", "15"}),
              HasSubstr("less than leaseDurationSeconds (15)"));
  EXPECT_THAT(Refusal({"--retry-period-seconds", "10"}),
              HasSubstr("less than renewDeadlineSeconds (10)"));
}

TEST_F(OperatorConfigTest, WhatIsPrintedReadsBackTheSame) {
  const auto printed = Parse({"--print-config", "--workers", "9", "--namespace", "true",
                              "--metrics-listen", "[::]:8080", "--leader-elect"});
  ASSERT_FALSE(printed);
  EXPECT_EQ(printed.error().code, 0);
  OperatorConfig again;
  const auto applied = ApplyConfigFile(printed.error().text, &again);
  ASSERT_TRUE(applied) << applied.error();
  EXPECT_EQ(again.workers, 9);
  EXPECT_EQ(again.watch_namespace, "true") << "a text stays a text";
  EXPECT_EQ(again.metrics_listen, "[::]:8080");
  EXPECT_EQ(ToYaml(again), printed.error().text);
}

TEST_F(OperatorConfigTest, HelpAndVersionEndInOrder) {
  const auto help = Parse({"--help"});
  ASSERT_FALSE(help);
  EXPECT_EQ(help.error().code, 0);
  EXPECT_THAT(help.error().text, HasSubstr("--leader-election-namespace"));
  const auto version = Parse({"--version"});
  ASSERT_FALSE(version);
  EXPECT_THAT(version.error().text, testing::MatchesRegex("ringmaster-operator [0-9]+.*\n"));
}

TEST(HostPort, IsReadWithNamesAndAddressesOfBothKinds) {
  EXPECT_EQ(ParseHostPort("0.0.0.0:8081")->port, 8081);
  EXPECT_EQ(ParseHostPort("[::1]:0")->host, "::1");
  EXPECT_EQ(ParseHostPort("localhost:1")->host, "localhost");
  for (const char* wrong :
       {"", ":1", "host", "host:", "host:x", "host:1x", "::1:80", "[]:1", "h:-1"}) {
    EXPECT_FALSE(ParseHostPort(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace ringmaster::app
