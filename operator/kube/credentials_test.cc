// Who the client says it is: tokens that rotate, plugins, certificates from files.
#include "operator/kube/credentials.h"

#include <stdlib.h>

#include <thread>

#include "operator/kube/exec_plugin.h"
#include "operator/kube/testing/client_fixture.h"

namespace ringmaster::kube {
namespace {

using ::testing::ElementsAre;
using testing::Exchange;
using ::testing::HasSubstr;
using testing::Object;
using testing::ServerRequest;
using testing::StatusBody;
using namespace std::chrono_literals;

constexpr char kV1[] = "client.authentication.k8s.io/v1";

class CredentialsTest : public testing::ClientFixture {
 protected:
  // Takes the token `accepted_` only.
  void ServeTokens() {
    Serve([this](const ServerRequest& request, Exchange& exchange) {
      auto it = request.headers.find("authorization");
      seen_.push_back(it == request.headers.end() ? "" : it->second);
      if (seen_.back() == "Bearer " + accepted_) return exchange.Answer(200, Object("a"));
      exchange.Answer(401, StatusBody(401, "Unauthorized", "Unauthorized").dump());
    });
  }
  static Result<Json> Get(KubeApi& api) { return api.Get(ConfigMaps(), "ns", "a"); }

  ExecPlugin Plugin(const std::string& body) {
    ExecPlugin plugin;
    plugin.command = Script("plugin", body).string();
    plugin.api_version = kV1;
    return plugin;
  }
  static std::string Print(const std::string& status) {
    return std::string("cat <<'END'\n{\"kind\": \"ExecCredential\", \"apiVersion\": \"") + kV1 +
           "\", \"status\": " + status + "}\nEND\n";
  }
  // How often the plugin ran: it writes a line each time.
  int Runs() {
    std::ifstream in(dir_ / "runs");
    std::string line;
    int n = 0;
    while (std::getline(in, line)) ++n;
    return n;
  }
  std::string Count() { return "echo ran >> " + RunsFile() + "\n"; }
  std::string RunsFile() const { return (dir_ / "runs").string(); }
  // Does one thing when it runs first, and another one ever after.
  ExecPlugin FirstAndThen(const std::string& first, const std::string& then) {
    return Plugin(Count() + "if [ $(wc -l < " + RunsFile() + ") = 1 ]; then " + first + "else " +
                  then + "\nfi\n");
  }
  static std::string PrintUntil(std::chrono::seconds from_now) {
    const std::time_t end = std::time(nullptr) + from_now.count();
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&end));
    return Print(R"({"token": "one", "expirationTimestamp": ")" + std::string(text) + "\"}");
  }

  std::string accepted_ = "one";
  std::vector<std::string> seen_;
};

TEST_F(CredentialsTest, ATokenFileIsReadAgainWhenTheServerRefusesTheToken) {
  ServeTokens();
  ClientConfig config = Config();
  config.token_file = Write("token", "one\n");
  KubeApi& api = Client(config);
  ASSERT_TRUE(Get(api).has_value());
  Write("token", "two\n");
  accepted_ = "two";
  auto got = Get(api);
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_THAT(seen_, ElementsAre("Bearer one", "Bearer one", "Bearer two"));
}

TEST_F(CredentialsTest, AWatchReadsTheTokenAgainToo) {
  Serve([this](const ServerRequest& request, Exchange& exchange) {
    if (request.headers.at("authorization") != "Bearer " + accepted_)
      return exchange.Answer(401, StatusBody(401, "Unauthorized", "Unauthorized").dump());
    exchange.Begin(200);
    exchange.End();
  });
  ClientConfig config = Config();
  config.token_file = Write("token", "old");
  KubeApi& api = Client(config);
  auto watch = [&] {
    return api.Watch(ConfigMaps(), "ns", {}, [](const WatchEvent&) { return true; }, {});
  };
  EXPECT_EQ(watch().error().code, ErrorCode::kForbidden);
  Write("token", "one");
  auto ended = watch();
  EXPECT_TRUE(ended.has_value()) << ended.error().message;
}

TEST_F(CredentialsTest, AWatchThatIsForbiddenIsNotBegunAgainWithTheSameToken) {
  Serve([](const ServerRequest&, Exchange& exchange) {
    exchange.Answer(403, StatusBody(403, "Forbidden", "not for you").dump());
  });
  ClientConfig config = Config();
  config.token_file = Write("token", "one");
  auto ended =
      Client(config).Watch(ConfigMaps(), "ns", {}, [](const WatchEvent&) { return true; }, {});
  EXPECT_EQ(ended.error().http_status, 403);
  EXPECT_EQ(server_->requests(), 1);
}

TEST_F(CredentialsTest, AnExpiredTokenIsForbiddenAfterOneRepeatAndNotALoop) {
  ServeTokens();
  ClientConfig config = Config();
  config.token_file = Write("token", "expired");
  auto got = Get(Client(config));
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, ErrorCode::kForbidden);
  EXPECT_EQ(got.error().http_status, 401);
  EXPECT_EQ(server_->requests(), 2);
}

TEST_F(CredentialsTest, AFixedTokenThatIsRefusedIsNotSentAgain) {
  ServeTokens();
  ClientConfig config = Config();
  config.token = "wrong";
  EXPECT_FALSE(Get(Client(config)).has_value());
  EXPECT_EQ(server_->requests(), 1);
}

TEST_F(CredentialsTest, ATokenFileThatIsOfNoUseIsNamedWithTheReason) {
  ServeTokens();
  const std::filesystem::path gone = dir_ / "gone", empty = Write("empty", " \n");
  struct Case {
    std::filesystem::path file;
    std::string message;
  };
  for (const Case& c : {Case{gone, "can't read a token from " + gone.string() + ": No such file"},
                        Case{dir_, "can't read a token from " + dir_.string() + ": Is a directory"},
                        Case{empty, "there is no token in " + empty.string()}}) {
    ClientConfig config = Config();
    config.token_file = c.file;
    auto got = Get(Client(config));
    ASSERT_FALSE(got.has_value()) << c.message;
    EXPECT_EQ(got.error().code, ErrorCode::kForbidden);
    EXPECT_THAT(got.error().message, HasSubstr(c.message));
  }
  EXPECT_EQ(server_->requests(), 0);
}

TEST_F(CredentialsTest, ACertificateFileThatIsOfNoUseIsNamedWithTheReason) {
  ServeTokens();
  const auto good = Write("good", "x");
  for (const bool certificate : {true, false}) {
    ClientConfig config = Config();
    config.client_cert_file = certificate ? dir_ : good;
    config.client_key_file = certificate ? good : dir_;
    auto got = Get(Client(config));
    ASSERT_FALSE(got.has_value());
    EXPECT_THAT(got.error().message, HasSubstr("can't read " + dir_.string() + ": Is a directory"));
  }
}

TEST_F(CredentialsTest, ATokenCantEndTheHeaderItStandsIn) {
  ServeTokens();
  ClientConfig config = Config();
  config.exec = Plugin(Print(R"({"token": "a\r\nX-Evil: 1"})"));
  auto got = Get(Client(config));
  ASSERT_FALSE(got.has_value());
  EXPECT_THAT(got.error().message, HasSubstr("characters that no token has"));
  EXPECT_EQ(server_->requests(), 0);
}

TEST_F(CredentialsTest, APluginRunsOnceWhileItsAnswerIsGood) {
  ServeTokens();
  ClientConfig config = Config();
  config.exec = Plugin(Count() + Print(R"({"token": "one"})"));
  KubeApi& api = Client(config);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Get(api).has_value());
  EXPECT_EQ(Runs(), 1);
}

TEST_F(CredentialsTest, APluginRunsAgainWhenItsAnswerHasExpired) {
  ServeTokens();
  ClientConfig config = Config();
  config.exec =
      Plugin(Count() + Print(R"({"token": "one", "expirationTimestamp": "2020-01-01T00:00:00Z"})"));
  KubeApi& api = Client(config);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Get(api).has_value());
  EXPECT_EQ(Runs(), 3);
}

TEST_F(CredentialsTest, APluginRunsAgainWhenTheServerRefusesItsToken) {
  ServeTokens();
  ClientConfig config = Config();
  config.exec = FirstAndThen(Print(R"({"token": "stale"})"), Print(R"({"token": "one"})"));
  auto got = Get(Client(config));
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(Runs(), 2);
}

TEST_F(CredentialsTest, APluginGetsArgumentsEnvironmentAndTheClusterAndNoInput) {
  ServeTokens();
  ClientConfig config = Config();
  config.exec =
      Plugin("cat > " + (dir_ / "stdin").string() + "\nprintf '%s|%s' \"$1\" \"$NAME\" > " +
             (dir_ / "args").string() + "\nprintf '%s' \"$KUBERNETES_EXEC_INFO\" > " +
             (dir_ / "info").string() + "\n" + Print(R"({"token": "one"})"));
  config.exec.args = {"--a b"};
  config.exec.env = {{"NAME", "value"}};
  setenv("NAME", "of the operator", 1);
  setenv("KUBERNETES_EXEC_INFO", "of the operator", 1);
  config.exec.cluster = {{"server", "https://x"}};
  auto got = Get(Client(config));
  unsetenv("NAME");
  unsetenv("KUBERNETES_EXEC_INFO");
  ASSERT_TRUE(got.has_value()) << got.error().message;
  auto text = [&](const char* name) {
    std::ifstream in(dir_ / name);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(text("stdin"), "");
  EXPECT_EQ(text("args"), "--a b|value");
  Json info = Json::parse(text("info"));
  EXPECT_EQ(info["kind"], "ExecCredential");
  EXPECT_EQ(info["apiVersion"], kV1);
  EXPECT_EQ(info["spec"]["interactive"], false);
  EXPECT_EQ(info["spec"]["cluster"]["server"], "https://x");
}

TEST_F(CredentialsTest, APluginMayGiveAClientCertificate) {
  testing::Authority clients("clients");
  testing::CertificateSpec spec;
  spec.common_name = "from the plugin";
  spec.client = true;
  auto mine = clients.Issue(spec);
  testing::ScriptedServer::Options options;
  options.client_ca = clients.pem();
  std::string seen;
  Serve(options, [&](const ServerRequest& request, Exchange& exchange) {
    seen = request.client_name;
    exchange.Answer(200, Object("a"));
  });
  auto answer = Write(
      "answer",
      Json{{"kind", "ExecCredential"},
           {"apiVersion", kV1},
           {"status", {{"clientCertificateData", mine.cert_pem}, {"clientKeyData", mine.key_pem}}}}
          .dump());
  ClientConfig config = Config();
  config.exec = Plugin("cat " + answer.string());
  auto got = Get(Client(config));
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(seen, "from the plugin");
}

TEST_F(CredentialsTest, WhatIsWrongWithAPluginIsSaid) {
  ServeTokens();
  struct Case {
    std::string body, message;
  };
  for (const Case& c :
       {Case{"echo please log in >&2; exit 3", "failed with status 3: please log in"},
        Case{"echo nothing useful", "printed no ExecCredential"},
        Case{"kill -9 $$", "failed with status 137"},
        Case{"echo '{\"kind\": \"Token\", \"status\": {\"token\": \"one\"}}'",
             "printed no ExecCredential"},
        Case{"head -c 2000000 /dev/zero | tr '\\0' x", "printed more than 1 MiB"},
        Case{Print("{}"), "neither a token nor a client certificate"},
        Case{Print(R"({"clientKeyData": "x"})"), "only one of"},
        Case{Print(R"({"token": "one", "expirationTimestamp": "soon"})"), "is no time: \"soon\""},
        Case{"echo '{\"kind\": \"ExecCredential\", \"apiVersion\": \"v9\", \"status\": {}}'",
             "apiVersion \"v9\"; the kubeconfig says client.authentication.k8s.io/v1"}}) {
    ClientConfig config = Config();
    config.exec = Plugin(c.body);
    auto got = Get(Client(config));
    ASSERT_FALSE(got.has_value()) << c.body;
    EXPECT_EQ(got.error().code, ErrorCode::kForbidden) << c.body;
    EXPECT_THAT(got.error().message, HasSubstr(c.message));
    EXPECT_THAT(got.error().message, HasSubstr("credential plugin " + config.exec.command));
  }
  EXPECT_EQ(server_->requests(), 0);
}

TEST_F(CredentialsTest, AMissingPluginIsNamedWithItsHint) {
  ServeTokens();
  ClientConfig config = Config();
  config.exec.command = (dir_ / "no-such-plugin").string();
  config.exec.install_hint = "Install it with magic.";
  auto got = Get(Client(config));
  ASSERT_FALSE(got.has_value());
  EXPECT_THAT(got.error().message, HasSubstr("no-such-plugin"));
  EXPECT_THAT(got.error().message, HasSubstr("Install it with magic."));
}

// A plugin that hangs, with a child that does, and what becomes of the child.
class HangingPluginTest : public CredentialsTest {
 protected:
  ExecPlugin Hangs(const std::string& before = "") {
    return Plugin(before + "sleep 100 &\necho $! > " + ChildFile() + ".new\nmv " + ChildFile() +
                  ".new " + ChildFile() + "\nsleep 100\n");
  }
  std::string ChildFile() const { return (dir_ / "child").string(); }
  static bool Becomes(const std::function<bool()>& so) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!so() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return so();
  }
  bool ChildRuns() const {
    pid_t child = 0;
    if (!(std::ifstream(ChildFile()) >> child)) return false;
    // One that has ended and that nobody waits for is a zombie still, so its state is looked at.
    std::ifstream in("/proc/" + std::to_string(child) + "/stat");
    std::string pid, name, state = "gone";
    in >> pid >> name >> state;
    return state != "gone" && state != "Z" && state != "X";
  }
};

TEST_F(HangingPluginTest, IsEndedWithAllItsChildrenAtTheDeadline) {
  ServeTokens();
  ClientConfig config = Config();
  config.deadline = 500ms;
  config.exec = Hangs("echo $$ is busy >&2\n");
  auto got = Get(Client(config));
  ASSERT_FALSE(got.has_value());
  EXPECT_THAT(got.error().message,
              ::testing::ContainsRegex("gave no answer within .*\\): [0-9]+ is busy"));
  EXPECT_TRUE(Becomes([&] { return !ChildRuns(); }));
}

TEST_F(HangingPluginTest, IsEndedAtTheDeadlineAlsoWhenItHasSaidAllItHasToSay) {
  ServeTokens();
  ClientConfig config = Config();
  config.deadline = 500ms;
  config.exec = Plugin(Print(R"({"token": "one"})") + "exec >&- 2>&-\nsleep 100\n");
  auto got = Get(Client(config));
  ASSERT_FALSE(got.has_value());
  EXPECT_THAT(got.error().message, HasSubstr("gave no answer within"));
}

TEST_F(HangingPluginTest, IsEndedWithAllItsChildrenWhenTheClientStops) {
  ServeTokens();
  std::stop_source stop;
  ClientConfig config = Config();
  config.stop = stop.get_token();
  config.exec = Hangs();
  KubeApi& api = Client(config);
  std::jthread stopper([&] {
    EXPECT_TRUE(Becomes([&] { return ChildRuns(); }));
    stop.request_stop();
  });
  EXPECT_THAT(Get(api).error().message, HasSubstr("was ended: this client is stopping"));
  EXPECT_TRUE(Becomes([&] { return !ChildRuns(); }));
}

// How credentials age, by a clock of the test's.
class CredentialsAgeTest : public CredentialsTest {
 protected:
  void Use(const ClientConfig& config) {
    credentials_.emplace(config, [this] { return now_; });
  }
  // The token, or what is wrong.
  std::string Token() {
    const auto got = credentials_->Get(Credentials::Clock::now() + 20s);
    return got ? got->token : got.error().message;
  }

  Credentials::Clock::time_point now_{1000s};
  std::optional<Credentials> credentials_;
};

TEST_F(CredentialsAgeTest, ATokenFileIsReadAgainEveryMinute) {
  ClientConfig config;
  config.token_file = Write("token", "one");
  Use(config);
  EXPECT_EQ(Token(), "one");
  Write("token", "two");
  now_ += 59s;
  EXPECT_EQ(Token(), "one");
  now_ += 1s;
  EXPECT_EQ(Token(), "two");
}

TEST_F(CredentialsAgeTest, ATokenServesWhileItsFileIsAwayAndThatIsLookedAtEveryFiveSeconds) {
  ClientConfig config;
  config.token_file = Write("token", "one");
  Use(config);
  EXPECT_EQ(Token(), "one");
  std::filesystem::remove(config.token_file);
  now_ += 24h;
  EXPECT_EQ(Token(), "one") << "only the server knows whether it is still good";
  Write("token", "two");
  now_ += 4999ms;
  EXPECT_EQ(Token(), "one");
  now_ += 1ms;
  EXPECT_EQ(Token(), "two");
}

TEST_F(CredentialsAgeTest, ACertificateFileIsReadAgainEveryMinute) {
  ClientConfig config;
  config.client_cert_file = Write("c.crt", "one");
  config.client_key_file = Write("c.key", "key of one");
  Use(config);
  const auto certificate = [&] { return credentials_->Get({})->client_cert_pem; };
  EXPECT_EQ(certificate(), "one");
  Write("c.crt", "two");
  Write("c.key", "key of two");
  EXPECT_EQ(certificate(), "one");
  now_ += 60s;
  EXPECT_EQ(certificate(), "two");
  EXPECT_EQ(credentials_->Get({})->client_key_pem, "key of two");
}

TEST_F(CredentialsAgeTest, APluginRunsAgainTenSecondsBeforeItsAnswerExpires) {
  ClientConfig config;
  config.exec = FirstAndThen(PrintUntil(1h), Print(R"({"token": "two"})"));
  Use(config);
  EXPECT_EQ(Token(), "one");
  now_ += 1h - 15s;
  EXPECT_EQ(Token(), "one");
  now_ += 6s;
  EXPECT_EQ(Token(), "two");
  now_ += 24h * 365;
  EXPECT_EQ(Token(), "two") << "an answer without an end is good for ever";
  EXPECT_EQ(Runs(), 2);
}

TEST_F(CredentialsAgeTest, AnOldAnswerServesWhileThePluginFailsUntilItExpires) {
  ClientConfig config;
  config.exec = FirstAndThen(PrintUntil(1h), "echo log in again >&2; exit 1");
  Use(config);
  EXPECT_EQ(Token(), "one");
  now_ += 1h - 9s;
  EXPECT_EQ(Token(), "one");
  EXPECT_EQ(Runs(), 2);
  now_ += 4s;
  EXPECT_EQ(Token(), "one");
  EXPECT_EQ(Runs(), 2) << "not at every call";
  now_ += 1s;
  EXPECT_EQ(Token(), "one");
  EXPECT_EQ(Runs(), 3);
  now_ += 4s;
  EXPECT_THAT(Token(), HasSubstr("log in again")) << "expired, however fresh the last failure is";
}

TEST_F(CredentialsTest, AKeyThatIsAnothersIsNamedBeforeAnyCall) {
  testing::Authority clients("clients");
  testing::CertificateSpec spec;
  spec.client = true;
  Serve([](const ServerRequest&, Exchange& exchange) { exchange.Answer(200, Object("a")); });
  ClientConfig config = Config();
  config.client_cert_file = Write("c.crt", clients.Issue(spec).cert_pem);
  config.client_key_file = Write("c.key", clients.Issue(spec).key_pem);
  EXPECT_THAT(Get(Client(config)).error().message, HasSubstr("don't belong together"));
  EXPECT_EQ(server_->requests(), 0);
}

TEST_F(CredentialsTest, ClientCertificatesInFilesAreReadAgain) {
  testing::Authority clients("clients");
  auto issue = [&](const std::string& name) {
    testing::CertificateSpec spec;
    spec.common_name = name;
    spec.client = true;
    return clients.Issue(spec);
  };
  testing::ScriptedServer::Options options;
  options.client_ca = clients.pem();
  std::vector<std::string> seen;
  Serve(options, [&](const ServerRequest& request, Exchange& exchange) {
    seen.push_back(request.client_name);
    if (request.client_name == "new") return exchange.Answer(200, Object("a"));
    exchange.Answer(401, StatusBody(401, "Unauthorized", "Unauthorized").dump());
  });
  auto old = issue("old"), fresh = issue("new");
  ClientConfig config = Config();
  config.client_cert_file = Write("c.crt", old.cert_pem);
  config.client_key_file = Write("c.key", old.key_pem);
  KubeApi& api = Client(config);
  EXPECT_EQ(Get(api).error().http_status, 401);
  Write("c.crt", fresh.cert_pem);
  Write("c.key", fresh.key_pem);
  auto got = Get(api);
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(seen.back(), "new");
}

TEST(Timestamps, AreReadWithFractionsAndOffsets) {
  auto base = ParseTimestamp("2026-01-02T03:04:05Z");
  ASSERT_TRUE(base.has_value());
  EXPECT_EQ(ParseTimestamp("2026-01-02T03:04:05.123456789Z"), base);
  EXPECT_EQ(ParseTimestamp("2026-01-02T05:04:05+02:00"), base);
  EXPECT_EQ(ParseTimestamp("2026-01-01T21:34:05.5-05:30"), base);
  for (const char* bad : {"", "soon", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02T03:04:05Zx",
                          "2026-01-02T03:04:05+x"}) {
    EXPECT_EQ(ParseTimestamp(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace ringmaster::kube
