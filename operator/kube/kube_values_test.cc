#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "operator/kube/base64.h"
#include "operator/kube/kubeconfig.h"
#include "operator/kube/rate_limiter.h"
#include "operator/kube/selectors.h"
#include "operator/kube/yaml.h"

namespace ringmaster::kube {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(Base64, RoundTripsEveryLength) {
  for (std::string text : {"", "a", "ab", "abc", "abcd"})
    EXPECT_EQ(DecodeBase64(EncodeBase64(text)), text);
  EXPECT_EQ(EncodeBase64("ab"), "YWI=");
  EXPECT_FALSE(DecodeBase64("a*b").has_value());
}

TEST(Yaml, QuotedScalarsStayStringsAndPlainOnesAreTyped) {
  auto documents =
      YamlToJson("a: '1'\nb: 1\nc: yes\nd: 1.5\ne: ~\nf: \"true\"\ng: 1Gi\n---\n---\nx: []\n");
  ASSERT_TRUE(documents.has_value());
  ASSERT_EQ(documents->size(), 2u);
  EXPECT_EQ((*documents)[0], Json({{"a", "1"},
                                   {"b", 1},
                                   {"c", true},
                                   {"d", 1.5},
                                   {"e", nullptr},
                                   {"f", "true"},
                                   {"g", "1Gi"}}));
}

TEST(Yaml, ErrorsNameTheLine) {
  auto documents = YamlToJson("a: 1\nb: [\n");
  ASSERT_FALSE(documents.has_value());
  EXPECT_THAT(documents.error(), HasSubstr("line 3"));
  EXPECT_THAT(YamlToJson("a: 1\na: 2\n").error(), HasSubstr("already set"));
}

TEST(LabelSelector, MatchesAsTheApiServerDoes) {
  Json object = {{"metadata", {{"labels", {{"a", "1"}, {"b", "2"}}}}}};
  struct Case {
    const char* selector;
    bool matches;
  };
  for (Case c : {Case{"", true},
                 {"a=1", true},
                 {"a==1,b=2", true},
                 {"a!=1", false},
                 {"c!=1", true},
                 {"a in (1,3)", true},
                 {"a notin (1)", false},
                 {"c notin (1)", true},
                 {"a", true},
                 {"c", false},
                 {"!c", true},
                 {"!a", false}}) {
    auto selector = LabelSelector::Parse(c.selector);
    ASSERT_TRUE(selector.has_value()) << c.selector;
    EXPECT_EQ(selector->Matches(object), c.matches) << c.selector;
  }
  for (const char* bad : {"a in 1", "=x", "a b", "a in (1"})
    EXPECT_FALSE(LabelSelector::Parse(bad).has_value()) << bad;
}

TEST(RateLimiter, LetsABurstThroughAndSpacesTheRest) {
  RateLimiter limiter(10, 2);
  auto now = RateLimiter::Clock::now();
  EXPECT_EQ(limiter.Reserve(now).count(), 0);
  EXPECT_EQ(limiter.Reserve(now).count(), 0);
  EXPECT_EQ(limiter.Reserve(now), std::chrono::milliseconds(100));
  EXPECT_EQ(limiter.Reserve(now + std::chrono::seconds(1)).count(), 0);
}

class KubeconfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/rm-kubeconfig-XXXXXX";
    dir_ = mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(dir_); }
  fs::path Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
    return dir_ / name;
  }
  static std::string Config(const std::string& server, const std::string& cluster,
                            const std::string& user) {
    return "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u, namespace: "
           "ns}}]\n"
           "clusters: [{name: k, cluster: {server: '" +
           server + "'" + cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n";
  }
  fs::path dir_;
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
  struct Case {
    std::string text, message;
  };
  for (const Case& c :
       {Case{Config("h:1", "", ""), "must begin with https://"},
        Case{Config("http://far:1", "", ""), "is not encrypted"},
        Case{Config("https://h:x", "", ""), "no valid port"},
        Case{Config("https://h", ", insecure-skip-tls-verify: true", ""),
             "insecure-skip-tls-verify is not supported"},
        Case{Config("https://h", ", certificate-authority-data: '*'", ""),
             "certificate-authority-data is not base64"},
        Case{Config("https://h", "", "client-certificate: gone.crt"), "gone.crt"},
        Case{Config("https://h", "", "exec: {args: [a]}"), "exec.command is missing"},
        Case{"current-context: x\n", "has no context \"x\""}, Case{"a: [", "line"}}) {
    auto config = LoadKubeconfig(Write("config", c.text));
    ASSERT_FALSE(config.has_value()) << c.text;
    EXPECT_EQ(config.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(config.error().message, HasSubstr(c.message));
    EXPECT_THAT(config.error().message, HasSubstr((dir_ / "config").string()));
  }
  EXPECT_THAT(LoadKubeconfig(dir_ / "missing").error().message, HasSubstr("can't be read"));
}

TEST_F(KubeconfigTest, AServiceAccountIsReadFromItsDirectory) {
  EXPECT_THAT(InClusterConfig(dir_, "", "").error().message, HasSubstr("KUBERNETES_SERVICE_HOST"));
  EXPECT_THAT(InClusterConfig(dir_, "10.0.0.1", "443").error().message, HasSubstr("ca.crt"));
  Write("ca.crt", "CA");
  Write("token", "t");
  auto config = InClusterConfig(dir_, "10.0.0.1", "443");
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->token_file, dir_ / "token");
}

}  // namespace
}  // namespace ringmaster::kube
