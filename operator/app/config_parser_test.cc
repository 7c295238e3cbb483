#include "operator/app/config_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "operator/app/setting_texts.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::app {
namespace {

using testing::HasSubstr;

class OperatorConfigTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::string File(const std::string& yaml) {
    std::ofstream(dir_ / "config.yaml") << yaml;
    return (dir_ / "config.yaml").string();
  }
  static tl::expected<OperatorConfig, ConfigExit> Parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "ringmaster-operator");
    return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
  }
  // The error about a wrong command line; its exit code is 2.
  static std::string Refusal(const std::vector<const char*>& arguments) {
    const auto parsed = Parse(arguments);
    if (parsed) return "it was accepted";
    EXPECT_EQ(parsed.error().code, 2) << parsed.error().text;
    return parsed.error().text;
  }

  support::TempDir temporary_;
  const std::filesystem::path dir_ = temporary_.path();
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
  EXPECT_TRUE(Parse({"--leader-elect", "--workers", "3"})->leader_elect);
  EXPECT_FALSE(Parse({"--leader-elect", "false"})->leader_elect);
}

TEST_F(OperatorConfigTest, EveryFlagThatIsWrongIsNamedWithItsValueAndWhatIsAllowed) {
  const struct {
    const char *flag, *value, *allowed;
  } cases[] = {
      {"--listen", "", "host:port, port 0 to 65535 (0: any free one), or unix:/path"},
      {"--listen", "somewhere", "host:port"},
      {"--listen", "unix:", "host:port"},
      {"--sidecar-target", "operator.ops.svc", "host:port, port 1 to 65535, or unix:/path"},
      {"--sidecar-target", "operator.ops.svc:0", "host:port"},
      {"--sidecar-target", "unix:", "host:port"},
      {"--sidecar-image", "", "a text that is not empty and has no blanks"},
      {"--sidecar-image", "a b", "a text"},
      {"--sidecar-image-pull-policy", "Sometimes", "one of Always, IfNotPresent, Never, or empty"},
      {"--sidecar-resources", "50m", "a text of JSON, such as '{\"requests\": {\"cpu\": \"50m\"}"},
      {"--sidecar-resources", "[]", "a text of JSON"},
      {"--sidecar-resources", R"({"request": {}})", "a text of JSON"},
      {"--sidecar-resources", R"({"limits": 1})", "a text of JSON"},
      {"--sidecar-resources", R"({"requests": {"cpu": {}}})", "a text of JSON"},
      {"--tls", "maybe", "true or false"},
      {"--operator-namespace", "Ops", "up to 63 lower case letters, digits and '-'"},
      {"--metrics-namespace", "a.b", "up to 63"},
      {"--watch-namespaces", "a,,b", "names of namespaces with commas between them, each once"},
      {"--watch-namespaces", "a,b,a", "names of namespaces"},
      {"--watch-namespaces", "a, b", "names of namespaces"},
      {"--watch-namespaces", "a\nb", "names of namespaces"},
      {"--leader-election-namespace", "-a", "up to 63"},
      {"--leader-election-namespace", "a-", "up to 63"},
      {"--leader-election-name", "", "up to 253 lower case letters, digits, '-' and '.'"},
      {"--leader-election-name", "a..b", "up to 253"},
      {"--network-policy", "1", "true or false"},
      {"--disruption-taints", "a/b=c:NoSchedule", "keys of taints with commas between them"},
      {"--disruption-taints", "a,,b", "keys of taints"},
      {"--trust-node-deletion", "yes", "true or false"},
      {"--metrics-secure", "yes", "true or false"},
      {"--clear-finalizers", "TRUE", "true or false"},
      {"--workers", "0", "an integer from 1 to 64"},
      {"--workers", "65", "an integer"},
      {"--workers", "two", "an integer"},
      {"--workers", "", "an integer"},
      {"--workers", "2.5", "an integer"},
      {"--workers", "4294967297", "an integer"},
      {"--gang-admission", "off", "true or false"},
      {"--autoscaling", "Off", "one of None, Pending, ProvisioningRequest"},
      {"--autoscaling", "", "one of None, Pending, ProvisioningRequest"},
      {"--autoscaling-class", "", "up to 253 lower case letters"},
      {"--autoscaling-class", "Any Class", "up to 253 lower case letters"},
      {"--autoscaling-after-seconds", "0", "an integer from 1 to 86400"},
      {"--autoscaling-within-seconds", "9", "an integer from 10 to 86400"},
      {"--autoscaling-jobs", "1001", "an integer from 1 to 1000"},
      {"--kueue", "yes", "true or false"},
      {"--pod-groups", "auto", "one of Auto, Never"},
      {"--health-listen", "8081", "host:port, port 0 to 65535 (0: any free one)"},
      {"--metrics-listen", "0.0.0.0:65536", "host:port"},
      {"--page-listen", "8443", "host:port"},
      {"--leader-elect", "maybe", "true or false"},
      {"--lease-duration-seconds", "3601", "an integer from 1 to 3600"},
      {"--renew-deadline-seconds", "0", "an integer from 1 to 3600"},
      {"--retry-period-seconds", "0", "an integer from 1 to 3600"},
      {"--api-server-timeout-seconds", "86401", "an integer from 1 to 86400"},
      {"--kube-qps", "0.05", "a number from 0.1 to 10000"},
      {"--kube-qps", "10001", "a number"},
      {"--kube-qps", "nan", "a number"},
      {"--kube-qps", "1e400", "a number"},
      {"--kube-burst", "0", "an integer from 1 to 10000"},
      {"--log-format", "xml", "one of text, json"},
      {"--log-level", "loud", "one of debug, info, warning, error"},
  };
  std::set<std::string> tried;
  for (const auto& c : cases) {
    tried.insert(c.flag);
    const std::string flag = c.flag, joined = flag + "=" + c.value;
    const auto says = [&](const std::string& value) {
      return HasSubstr("operator: " + flag + ": " + value + " is not allowed: " + c.allowed);
    };
    // Texts are quoted.
    EXPECT_THAT(Refusal({joined.c_str()}),
                testing::AnyOf(says(c.value), says(nlohmann::json(c.value).dump())));
  }
  EXPECT_THAT(Refusal({"--watch-namespaces=\xff"}), HasSubstr("--watch-namespaces: \""))
      << "no UTF-8";
  // Settings that --help lists and that are missing here have no invalid values of their own.
  std::set<std::string> listed;
  std::istringstream help(Parse({"--help"}).error().text);
  for (std::string word; help >> word;) {
    if (word.starts_with("--"))
      listed.insert(word.substr(0, word.find_first_not_of("-abcdefghijklmnopqrstuvwxyz")));
  }
  for (const std::string& flag : tried) EXPECT_EQ(listed.erase(flag), 1u) << flag;
  EXPECT_THAT(listed, testing::UnorderedElementsAre("--kubeconfig", "--config", "--print-config",
                                                    "--version"));
}

TEST_F(OperatorConfigTest, WhatIsJustWithinTheBoundsIsAllowed) {
  for (const char* good : {"--workers=1",
                           "--workers=64",
                           "--kube-qps=0.1",
                           "--kube-qps=10000",
                           "--kube-qps=1e3",
                           "--kube-burst=10000",
                           "--sidecar-target=op.ops.svc:1",
                           "--sidecar-target=unix:s",
                           "--kubeconfig=k",
                           "--metrics-listen=h:65535",
                           "--page-listen=h:8443",
                           R"(--sidecar-resources={"requests": {}})",
                           "--sidecar-target=",
                           "--sidecar-image-pull-policy=",
                           "--sidecar-image-pull-policy=Never",
                           "--sidecar-resources=",
                           R"(--sidecar-resources={"limits": {"cpu": 1, "memory": "1Gi"}})",
                           "--watch-namespaces=",
                           "--watch-namespaces=0,team-a",
                           "--leader-election-name=a-1.b",
                           "--disruption-taints=",
                           "--disruption-taints=example.com/A_b,c",
                           "--health-listen=",
                           "--listen=unix:/s",
                           "--tls=false",
                           "--lease-duration-seconds=3600",
                           "--api-server-timeout-seconds=86400"}) {
    const auto parsed = Parse({good});
    EXPECT_TRUE(parsed) << good << ": " << parsed.error().text;
  }
  const std::string label(63, 'a'),
      name = label + "." + label + "." + label + "." + label.substr(2);
  EXPECT_TRUE(Parse({"--watch-namespaces", label.c_str()}));
  EXPECT_THAT(Refusal({"--watch-namespaces", (label + "a").c_str()}), HasSubstr("up to 63"));
  EXPECT_TRUE(Parse({"--leader-election-name", name.c_str()}));
  EXPECT_THAT(Refusal({"--leader-election-name", (name + "a").c_str()}), HasSubstr("up to 253"));
}

TEST_F(OperatorConfigTest, WhatIsNoOptionIsNamedWithTheOneThatWasMeant) {
  const struct {
    std::vector<const char*> arguments;
    const char* says;
  } cases[] = {
      {{"--wrokers", "3"}, "--wrokers: unknown option: did you mean --workers?\n"},
      {{"--wrokers=3"}, "--wrokers: unknown option: did you mean --workers?\n"},
      {{"--kubeQps", "3"}, "--kubeQps: unknown option: did you mean --kube-qps?\n"},
      {{"--WORKERS"}, "--WORKERS: unknown option: did you mean --workers?\n"},
      {{"--worrkers"}, "did you mean --workers?\n"},
      {{"--wxrkxrx"}, "did you mean --workers?\n"},
      {{"--foo"}, "--foo: unknown option\n"},
      {{"-v"}, "-v: unknown option\n"},
      {{"--leader-elect", "true", "now"}, "now: not expected: options begin with --\n"},
      {{"--workers"}, "operator: --workers: needs a value\n"},
      {{"--config"}, "operator: --config: needs a value\n"},
      {{"--workers", "3", "--workers=4"}, "--workers: is given 2 times: once is allowed\n"},
      {{"--leader-elect", "--leader-elect"}, "--leader-elect: is given 2 times"},
  };
  for (const auto& c : cases) EXPECT_THAT(Refusal(c.arguments), HasSubstr(c.says));
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
      {"sidecarImage: ''", "sidecarImage: \"\" is not allowed: a text that is not empty"},
      {"sidecarResources: {requests: {}}", "is not allowed: a text of JSON"},
      {"logLevel: true", "logLevel: true is not allowed: one of"},
      {"kubeconfig: 1", "kubeconfig: 1 is not allowed: a text\n"},
      {"kubeQps: '1'", "kubeQps: \"1\" is not allowed: a number from 0.1 to 10000"},
      {"kubeQpst: 1", "did you mean \"kubeQps\"?"},
      {"leaderElectionVerbs: a", "unknown key \"leaderElectionVerbs\": allowed are kubeconfig"},
      {"sidecar_image_pull_polcy: a", "did you mean \"sidecarImagePullPolicy\"?"},
      {"leader_elect: true", "did you mean \"leaderElect\"?"},
      {"LeaderElect: true", "did you mean \"leaderElect\"?"},
      {"tsl: true", "did you mean \"tls\"?"},
      {"workers: 1\nworkers: 2", "already set"},
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

TEST_F(OperatorConfigTest, FilesThatCantBeReadAreNamedWithTheReason) {
  EXPECT_THAT(Refusal({"--config", "/nowhere/c.yaml"}),
              HasSubstr("--config /nowhere/c.yaml: can't be read: No such file"));
  EXPECT_THAT(Refusal({"--config", dir_.c_str()}),
              HasSubstr("--config " + dir_.string() + ": can't be read: Is a directory"));
  const std::string empty = File("# all as it is\n");
  EXPECT_TRUE(Parse({"--config", empty.c_str()})) << "it says nothing, which is not wrong";
}

TEST_F(OperatorConfigTest, ValuesHaveToFitTogether) {
  const struct {
    std::vector<const char*> arguments;
    const char* says;
  } cases[] = {
      {{"--renew-deadline-seconds", "15"},
       "--renew-deadline-seconds (renewDeadlineSeconds): 15 is not allowed: less than "
       "--lease-duration-seconds (leaseDurationSeconds), which is 15"},
      {{"--lease-duration-seconds", "9"}, "10 is not allowed: less than --lease-duration-seconds"},
      {{"--retry-period-seconds", "10"},
       "--retry-period-seconds (retryPeriodSeconds): 10 is not allowed: less than "
       "--renew-deadline-seconds (renewDeadlineSeconds), which is 10"},
      {{"--health-listen", "0.0.0.0:9443"},
       "--health-listen (healthListen): 0.0.0.0:9443 is not allowed: another address than "
       "--listen (listen)"},
      {{"--metrics-listen", "0.0.0.0:9443"}, "--metrics-listen (metricsListen): 0.0.0.0:9443"},
      {{"--page-listen", "h:1", "--metrics-listen", "h:1"},
       "--page-listen (pageListen): h:1 is not allowed: another address than --health-listen"},
      {{"--page-listen", "0.0.0.0:9443"}, "--page-listen (pageListen): 0.0.0.0:9443"},
      {{"--metrics-secure", "--metrics-listen", "h:1", "--health-listen", "h:1"},
       "--metrics-listen (metricsListen): h:1 is not allowed: another address than --health-listen "
       "(healthListen) with --metrics-secure (metricsSecure)"},
  };
  for (const auto& c : cases) EXPECT_THAT(Refusal(c.arguments), HasSubstr(c.says));
  const std::string file = File("renewDeadlineSeconds: 14\nretryPeriodSeconds: 13\n");
  EXPECT_TRUE(Parse({"--config", file.c_str()}));
  EXPECT_TRUE(Parse(
      {"--listen=127.0.0.1:0", "--health-listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0"}))
      << "each gets a free port of its own";
}

TEST_F(OperatorConfigTest, WhatIsPrintedReadsBackTheSame) {
  const auto printed = Parse({"--print-config", "--workers", "9", "--watch-namespaces", "true",
                              "--metrics-listen", "[::]:8080", "--leader-elect"});
  ASSERT_FALSE(printed);
  EXPECT_EQ(printed.error().code, 0);
  OperatorConfig again;
  const auto applied = ApplyConfigFile(printed.error().text, &again);
  ASSERT_TRUE(applied) << applied.error();
  EXPECT_EQ(again.workers, 9);
  EXPECT_EQ(again.watch_namespaces, "true") << "a text stays a text";
  EXPECT_EQ(again.metrics_listen, "[::]:8080");
  EXPECT_EQ(ToYaml(again), printed.error().text);
}

TEST_F(OperatorConfigTest, HelpAndVersionEndInOrder) {
  const auto help = Parse({"--help"});
  ASSERT_FALSE(help);
  EXPECT_EQ(help.error().code, 0);
  EXPECT_THAT(help.error().text, HasSubstr("--leader-election-namespace"));
  EXPECT_THAT(help.error().text, HasSubstr("--kube-qps NUMBER=50"));
  const auto version = Parse({"--version"});
  ASSERT_FALSE(version);
  EXPECT_THAT(version.error().text, testing::MatchesRegex("ringmaster-operator [0-9]+.*\n"));
}

TEST(HostPort, IsReadWithNamesAndAddressesOfBothKinds) {
  EXPECT_EQ(ParseHostPort("0.0.0.0:8081")->port, 8081);
  EXPECT_EQ(ParseHostPort("[::1]:0")->host, "::1");
  EXPECT_EQ(ParseHostPort("localhost:1")->host, "localhost");
  for (const char* wrong :
       {"", ":1", "host", "host:", "host:x", "host:1x", "::1:80", "[]:1", "fd00::1]:80", "h:-1"}) {
    EXPECT_FALSE(ParseHostPort(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace ringmaster::app
