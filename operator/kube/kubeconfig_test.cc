#include "operator/kube/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "tests/support/temp_dir.h"

namespace ringmaster::kube {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class KubeconfigTest : public ::testing::Test {
 protected:
  fs::path Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
    return dir_ / name;
  }
  static Result<ClientConfig> Load(const std::vector<fs::path>& files,
                                   const std::string& context = "") {
    return LoadKubeconfigs(files, context);
  }
  static std::string Config(const std::string& server, const std::string& cluster,
                            const std::string& user) {
    return "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u, namespace: "
           "ns}}]\n"
           "clusters: [{name: k, cluster: {server: '" +
           server + "'" + cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n";
  }
  const support::TempDir temp_;
  const fs::path dir_ = temp_.path();
};

TEST_F(KubeconfigTest, ReadsServerAuthorityAndToken) {
  Write("ca.crt", "CA");
  auto config = LoadKubeconfig(Write(
      "config", Config("https://h:6443/prefix/", ", certificate-authority: ca.crt", "token: t")));
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->host, "h");
  EXPECT_EQ(config->port, 6443);
  EXPECT_EQ(config->path_prefix, "/prefix");
  EXPECT_EQ(config->ca_pem, "CA");
  EXPECT_EQ(config->token, "t");
  EXPECT_EQ(config->default_namespace, "ns");
}

TEST_F(KubeconfigTest, WrongEntriesAreNamed) {
  const std::string context = "current-context: c\ncontexts: [{name: c, context: ";
  const std::string exec = "exec: {apiVersion: client.authentication.k8s.io/v1, command: c";
  struct Case {
    std::string text, message;
  };
  for (const Case& c :
       {Case{Config("h:1", "", ""), "cluster \"k\".server: \"h:1\" must begin with https://"},
        Case{Config("http://far:1", "", ""), "is not encrypted"},
        Case{Config("https://h:x", "", ""), "no valid port"},
        Case{Config("https://h:0", "", ""), "no valid port: allowed are 1 to 65535"},
        Case{Config("https://h:65536", "", ""), "no valid port"},
        Case{Config("https://h:", "", ""), "no valid port"},
        Case{Config("https://h:+1", "", ""), "no valid port"},
        Case{Config("https://h:1x", "", ""), "no valid port"},
        Case{Config("https://h:99999999999", "", ""), "no valid port"},
        Case{Config("https://[]", "", ""), "names no host"},
        Case{Config("https://:1", "", ""), "names no host"},
        Case{Config("https://h", ", insecure-skip-tls-verify: true", ""),
             "insecure-skip-tls-verify: is not supported: name the authority"},
        Case{Config("https://h", ", insecure-skip-tls-verify: maybe", ""),
             "must be true or false, not \"maybe\""},
        Case{Config("https://h", ", proxy-url: 'http://p:3128'", ""),
             "cluster \"k\".proxy-url: proxies are not supported"},
        Case{Config("https://h", ", certificate-authority-data: '*'", ""),
             "certificate-authority-data: is not base64"},
        Case{Config("https://h", "", "client-certificate: gone.crt"), "gone.crt"},
        Case{Config("https://h", "", "client-certificate-data: YQ=="),
             "user \"u\".client-key: is missing"},
        Case{Config("https://h", "", "client-key-data: YQ=="), "client-certificate: is missing"},
        Case{Config("https://h", "", "token: 123"), "user \"u\".token: must be a string, not 123"},
        Case{Config("https://h", "", "username: admin"), "API servers take no passwords"},
        Case{Config("https://h", "", "password: p"), "user \"u\".password: API servers take"},
        Case{Config("https://h", "", "as: root"), "user \"u\".as: acting as another user"},
        Case{Config("https://h", "", "as-uid: '0'"), "user \"u\".as-uid: acting as"},
        Case{Config("https://h", "", "as-groups: [a]"), "user \"u\".as-groups: acting as"},
        Case{Config("https://h", "", "as-user-extra: {}"), "user \"u\".as-user-extra: acting as"},
        Case{Config("https://h", "", "auth-provider: {name: gcp}"), "use an exec plugin"},
        Case{Config("https://h", "", "exec: {args: [a]}"), "user \"u\".exec.command: is missing"},
        Case{Config("https://h", "", "exec: {command: c, apiVersion: v1alpha1}"),
             "exec.apiVersion: \"v1alpha1\" is not supported"},
        Case{Config("https://h", "", exec + ", interactiveMode: Always}"),
             "exec.interactiveMode: \"Always\": the plugin needs a terminal"},
        Case{Config("https://h", "", exec + ", interactiveMode: Perhaps}"),
             "must be Never, IfAvailable or Always"},
        Case{Config("https://h", "", exec + ", args: [1]}"), "exec.args: 1 must be a string"},
        Case{Config("https://h", "", exec + ", args: a}"), "exec.args: must be a list"},
        Case{Config("https://h", "", exec + ", env: [A]}"), "exec.env: \"A\" must have a name"},
        Case{Config("https://h", "", exec + ", env: [{name: 1, value: v}]}"), "both strings"},
        Case{Config("https://h", "", exec + ", env: [{name: A, value: 1}]}"), "both strings"},
        Case{Config("https://h", "", exec + ", env: [{value: v}]}"), "must have a name"},
        Case{Config("https://h", "", exec + ", provideClusterInfo: 1}"),
             "exec.provideClusterInfo: must be true or false, not 1"},
        Case{Config("https://h", "", exec + ", env: [{name: A}]}"), "must have a name and a value"},
        Case{Config("https://h", "", "exec: plugin"), "user \"u\".exec: must be a map"},
        Case{"current-context: x\n", "has no context \"x\"; it has none"},
        Case{"current-context: c\ncontexts: [{name: a}, {name: b}]\n",
             "has no context \"c\"; it has \"a\" \"b\""},
        Case{"current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n",
             "has no cluster \"k\"; it has none"},
        Case{context + "{cluster: k, user: v}}]\nclusters: [{name: k, cluster: {server: "
                       "'https://h'}}]\nusers: [{name: u}]\n",
             "has no user \"v\"; it has \"u\""},
        Case{context + "{user: u}}]\n", "context \"c\".cluster: is missing"},
        Case{context + "{cluster: [k]}}]\n",
             "context \"c\".cluster: must be a string, not [\"k\"]"},
        Case{context + "{cluster: k, user: 1}}]\nclusters: [{name: k, cluster: {server: "
                       "'https://h'}}]\n",
             "context \"c\".user: must be a string, not 1"},
        Case{context + "{cluster: k, namespace: 1}}]\nclusters: [{name: k, cluster: {server: "
                       "'https://h'}}]\n",
             "context \"c\".namespace: must be a string, not 1"},
        Case{context + "{cluster: k}}]\nclusters: [{name: k}]\n",
             "cluster \"k\".server: is missing"},
        Case{"clusters: []\n", "has no current-context"},
        Case{"current-context: [c]\n", ": current-context: must be a string, not [\"c\"]"},
        Case{"contexts: {a: b}\n", ": contexts: must be a list"},
        Case{"users: [u]\n", "users: an entry has no name"},
        Case{"users: [{name: 1}]\n", "users: an entry has no name"},
        Case{"contexts: [{context: {}}]\n", "an entry has no name"},
        Case{"just text", "is not a kubeconfig"},
        Case{"", "is empty"},
        Case{"a: [", "line"}}) {
    auto config = LoadKubeconfig(Write("config", c.text));
    ASSERT_FALSE(config.has_value()) << c.text;
    EXPECT_EQ(config.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(config.error().message, HasSubstr(c.message));
    EXPECT_THAT(config.error().message, HasSubstr((dir_ / "config").string()));
  }
}

TEST_F(KubeconfigTest, FilesThatCantBeReadAreNamedWithTheReason) {
  const std::string dir = dir_.string();
  EXPECT_THAT(LoadKubeconfig(dir_ / "missing").error().message,
              HasSubstr("kubeconfig " + dir + "/missing: there is no such file"));
  EXPECT_THAT(LoadKubeconfig(dir_).error().message,
              HasSubstr("kubeconfig " + dir + ": can't be read: Is a directory"));
  const auto good = Write("good", Config("https://h", "", "token: t"));
  EXPECT_THAT(Load({good, dir_}).error().message, HasSubstr("can't be read: Is a directory"))
      << "what it says may be what counts";
  const auto config =
      Write("config", Config("https://h", "", "client-certificate: ., client-key: ."));
  EXPECT_THAT(LoadKubeconfig(config).error().message,
              HasSubstr("user \"u\".client-certificate: can't read " + dir + "/.: Is a directory"));
  EXPECT_THAT(Load({}).error().message, HasSubstr("no kubeconfig is named"));
  const auto none = Write("none", "users: []\n");
  EXPECT_THAT(Load({dir_ / "missing", none, good}, "x").error().message,
              HasSubstr("kubeconfig " + none.string() + ": has no context \"x\""));
}

TEST_F(KubeconfigTest, ServersAreReadInAllTheirForms) {
  struct Case {
    std::string server, host;
    int port;
    std::string prefix;
    bool tls;
  };
  for (const Case& c : {Case{"https://h", "h", 443, "", true},
                        {"https://h:1", "h", 1, "", true},
                        {"https://h:65535/", "h", 65535, "", true},
                        {"https://h/a/b//", "h", 443, "/a/b", true},
                        {"https://[::1]", "::1", 443, "", true},
                        {"https://[fd00::a]:6443/x", "fd00::a", 6443, "/x", true},
                        {"http://127.0.0.1", "127.0.0.1", 80, "", false},
                        {"http://localhost:8001", "localhost", 8001, "", false},
                        {"http://[::1]:8001", "::1", 8001, "", false}}) {
    auto config = LoadKubeconfig(Write("config", Config(c.server, "", "")));
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->host, c.host) << c.server;
    EXPECT_EQ(config->port, c.port) << c.server;
    EXPECT_EQ(config->path_prefix, c.prefix) << c.server;
    EXPECT_EQ(config->tls, c.tls) << c.server;
  }
}

TEST_F(KubeconfigTest, WhatSaysNothingNewIsAccepted) {
  auto config = LoadKubeconfig(
      Write("config",
            "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: }}]\n"
            "clusters: [{name: k, cluster: {server: 'https://h', insecure-skip-tls-verify: false, "
            "proxy-url: '', certificate-authority: ''}}]\nusers: null\n"));
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->default_namespace, "default");
  EXPECT_EQ(config->ca_pem, "");
  EXPECT_TRUE(config->ca_file.empty());
}

TEST_F(KubeconfigTest, AnotherContextThanTheCurrentOneCanBeWanted) {
  auto file =
      Write("config",
            "current-context: a\n"
            "contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: b}}]\n"
            "clusters: [{name: a, cluster: {server: 'https://a'}},\n"
            "           {name: b, cluster: {server: 'https://[::1]:6443'}}]\n");
  EXPECT_EQ(LoadKubeconfig(file)->host, "a");
  EXPECT_EQ(LoadKubeconfig(file, "b")->host, "::1");
  EXPECT_EQ(LoadKubeconfig(file, "b")->port, 6443);
  EXPECT_THAT(LoadKubeconfig(file, "c").error().message, HasSubstr("has no context \"c\""));
}

TEST_F(KubeconfigTest, SeveralFilesAreOneAndTheFirstEntryOfANameWins) {
  fs::create_directory(dir_ / "sub");
  Write("sub/ca.crt", "CA of sub");
  auto first = Write("first",
                     "current-context: c\n"
                     "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
                     "users: [{name: u, user: {token: first}}]\n");
  auto second = Write("sub/second",
                      "current-context: other\n"
                      "clusters: [{name: k, cluster: {server: 'https://k', "
                      "certificate-authority: ca.crt}}]\n"
                      "users: [{name: u, user: {token: second}}]\n");
  auto config = Load(
      SplitPathList(first.string() + "::" + (dir_ / "missing").string() + ":" + second.string()));
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->host, "k");
  EXPECT_EQ(config->token, "first");
  EXPECT_EQ(config->ca_pem, "CA of sub");  // relative to the file that names it
  EXPECT_EQ(config->ca_file, dir_ / "sub" / "ca.crt");
  EXPECT_THAT(Load({dir_ / "x", dir_ / "y"}).error().message,
              HasSubstr((dir_ / "x").string() + ": there is no such file"));
  // The error names the file with the wrong entry.
  Write("sub/second", "clusters: [{name: k, cluster: {server: 'k'}}]\n");
  EXPECT_THAT(Load({first, second}).error().message, HasSubstr("sub/second"));
}

TEST(SplitPathList, LeavesOutWhatIsEmpty) {
  EXPECT_TRUE(SplitPathList("").empty());
  EXPECT_EQ(SplitPathList(":a::b:"), (std::vector<fs::path>{"a", "b"}));
}

TEST_F(KubeconfigTest, CertificatesAreReadInlineAndFromFiles) {
  Write("c.crt", "CERT");
  Write("c.key", "KEY");
  auto files = LoadKubeconfig(
      Write("config", Config("https://h", "", "client-certificate: c.crt, client-key: c.key")));
  ASSERT_TRUE(files.has_value()) << files.error().message;
  EXPECT_EQ(files->client_cert_pem, "CERT");
  EXPECT_EQ(files->client_key_file, dir_ / "c.key");
  // If only one of the two is a file, the pair can't be read again.
  for (const char* mixed : {"client-certificate: c.crt, client-key-data: S0VZ",
                            "client-certificate-data: Q0VSVA==, client-key: c.key"}) {
    auto config = LoadKubeconfig(Write("config", Config("https://h", "", mixed)));
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->client_cert_pem + config->client_key_pem, "CERTKEY");
    EXPECT_TRUE(config->client_cert_file.empty()) << mixed;
    EXPECT_TRUE(config->client_key_file.empty()) << mixed;
  }
  auto both = LoadKubeconfig(Write(
      "config",
      Config("https://h", ", certificate-authority: gone, certificate-authority-data: Q0E=", "")));
  ASSERT_TRUE(both.has_value()) << both.error().message;
  EXPECT_EQ(both->ca_pem, "CA");
  auto inlined = LoadKubeconfig(Write(
      "config", Config("https://h", ", certificate-authority-data: Q0E=, tls-server-name: n",
                       "client-certificate-data: Q0VSVA==, client-key-data: S0VZ, tokenFile: t")));
  ASSERT_TRUE(inlined.has_value()) << inlined.error().message;
  EXPECT_EQ(inlined->ca_pem, "CA");
  EXPECT_EQ(inlined->client_cert_pem, "CERT");
  EXPECT_EQ(inlined->client_key_pem, "KEY");
  EXPECT_TRUE(inlined->client_cert_file.empty());
  EXPECT_EQ(inlined->tls_server_name, "n");
  EXPECT_EQ(inlined->token_file, dir_ / "t");
}

TEST_F(KubeconfigTest, AnExecPluginIsReadWithWhatItIsToldOfTheCluster) {
  auto config = LoadKubeconfig(Write(
      "config",
      Config(
          "https://h",
          ", certificate-authority-data: Q0E=, extensions: [{name: "
          "client.authentication.k8s.io/exec, extension: {audience: x}}]",
          "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./bin/plugin, args: "
          "[-a], env: [{name: N, value: V}], installHint: hint, interactiveMode: IfAvailable, "
          "provideClusterInfo: true}")));
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->exec.command, (dir_ / "./bin/plugin").string());
  EXPECT_EQ(config->exec.args, std::vector<std::string>{"-a"});
  EXPECT_EQ(config->exec.env.at("N"), "V");
  EXPECT_EQ(config->exec.api_version, "client.authentication.k8s.io/v1beta1");
  EXPECT_EQ(config->exec.install_hint, "hint");
  EXPECT_EQ(config->exec.cluster, Json({{"server", "https://h"},
                                        {"certificate-authority-data", "Q0E="},
                                        {"config", {{"audience", "x"}}}}));
}

TEST_F(KubeconfigTest, AnExecPluginMayBeOnThePathAndIsToldNothingUnasked) {
  for (const char* mode : {"Never", "IfAvailable"}) {
    auto config = LoadKubeconfig(Write(
        "config", Config("https://h", ", tls-server-name: n",
                         "exec: {apiVersion: client.authentication.k8s.io/v1, command: plugin, "
                         "args: [a, b], interactiveMode: " +
                             std::string(mode) + "}")));
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->exec.command, "plugin");
    EXPECT_EQ(config->exec.args, (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(config->exec.cluster.is_null());
  }
}

TEST_F(KubeconfigTest, AnExecPluginIsToldTheServersNameAndNothingMeantForOthers) {
  auto config = LoadKubeconfig(
      Write("config", Config("https://h",
                             ", tls-server-name: n, extensions: [x, {name: other, extension: 1}, "
                             "{name: client.authentication.k8s.io/exec}]",
                             "exec: {apiVersion: client.authentication.k8s.io/v1, command: "
                             "/bin/plugin, provideClusterInfo: true}")));
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->exec.command, "/bin/plugin");
  EXPECT_EQ(config->exec.cluster, Json({{"server", "https://h"}, {"tls-server-name", "n"}}));
}

TEST_F(KubeconfigTest, AServiceAccountIsReadFromItsDirectory) {
  EXPECT_THAT(InClusterConfig(dir_, "", "").error().message, HasSubstr("KUBERNETES_SERVICE_HOST"));
  EXPECT_THAT(InClusterConfig(dir_, "10.0.0.1", "443").error().message, HasSubstr("ca.crt"));
  Write("ca.crt", "CA");
  EXPECT_THAT(InClusterConfig(dir_, "10.0.0.1", "443").error().message,
              HasSubstr("automountServiceAccountToken"));
  Write("token", "t");
  Write("namespace", "here\n");
  auto config = InClusterConfig(dir_, "10.0.0.1", "6443");
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->host, "10.0.0.1");
  EXPECT_EQ(config->port, 6443);
  EXPECT_EQ(config->ca_pem, "CA");
  EXPECT_EQ(config->token_file, dir_ / "token");
  EXPECT_EQ(config->ca_file, dir_ / "ca.crt");
  EXPECT_EQ(config->default_namespace, "here");
  for (const char* port : {"", "0", "65536", "https"}) {
    EXPECT_THAT(InClusterConfig(dir_, "10.0.0.1", port).error().message,
                HasSubstr("KUBERNETES_SERVICE_PORT (\"" + std::string(port) + "\") must name"));
  }
  EXPECT_THAT(InClusterConfig(dir_, "", "443").error().message, HasSubstr("_HOST (\"\")"));
  fs::remove(dir_ / "namespace");
  EXPECT_EQ(InClusterConfig(dir_, "10.0.0.1", "443")->default_namespace, "default");
}

}  // namespace
}  // namespace ringmaster::kube
