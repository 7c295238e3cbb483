// The client's identity: rotated tokens, plugins, certificates from files.
#include "operator/kube/credentials.h"

#include <thread>

#include "operator/kube/testing/plugin_fixture.h"

namespace ringmaster::kube {
namespace {

using ::testing::ElementsAre;
using testing::Exchange;
using ::testing::HasSubstr;
using testing::Object;
using testing::ServerRequest;
using testing::StatusBody;
using namespace std::chrono_literals;

class CredentialsTest : public testing::PluginFixture {
 protected:
  // Accepts only the token `accepted_`.
  void ServeTokens() {
    Serve([this](const ServerRequest& request, Exchange& exchange) {
      auto it = request.headers.find("authorization");
      seen_.push_back(it == request.headers.end() ? "" : it->second);
      if (seen_.back() == "Bearer " + accepted_) return exchange.Answer(200, Object("a"));
      exchange.Answer(401, StatusBody(401, "Unauthorized", "Unauthorized").dump());
    });
  }
  static Result<Json> Get(KubeApi& api) { return api.Get(ConfigMaps(), "ns", "a"); }

  // How often the plugin has run: it writes a line each time.
  int Runs() {
    std::ifstream in(dir_ / "runs");
    std::string line;
    int n = 0;
    while (std::getline(in, line)) ++n;
    return n;
  }
  std::string Count() { return "echo ran >> " + RunsFile() + "\n"; }
  std::string RunsFile() const { return (dir_ / "runs").string(); }
  // A plugin that does one thing in its first run, and another in all later ones.
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
  const Json status = {{"clientCertificateData", mine.cert_pem}, {"clientKeyData", mine.key_pem}};
  auto answer = Write("answer", Answer(status.dump()));
  ClientConfig config = Config();
  config.exec = Plugin("cat " + answer.string());
  auto got = Get(Client(config));
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(seen, "from the plugin");
}

TEST_F(CredentialsTest, APluginThatIsOfNoUseIsNamedAndNoCallIsMade) {
  ServeTokens();
  ClientConfig config = Config();
  config.exec = Plugin("exit 3");
  auto got = Get(Client(config));
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, ErrorCode::kForbidden);
  EXPECT_THAT(got.error().message,
              HasSubstr("credential plugin " + config.exec.command + " failed with status 3"));
  EXPECT_EQ(server_->requests(), 0);
}

TEST_F(CredentialsTest, APluginHasTheTimeThatTheCallHas) {
  ServeTokens();
  ClientConfig config = Config();
  config.deadline = 500ms;
  config.exec = Hangs();
  EXPECT_THAT(Get(Client(config)).error().message, HasSubstr("gave no answer within"));
}

TEST_F(CredentialsTest, APluginIsEndedWhenTheClientStops) {
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
}

TEST_F(CredentialsTest, APluginThatHangsHoldsNobodyUpBeyondTheirOwnDeadline) {
  std::stop_source stop;
  ClientConfig config;
  config.stop = stop.get_token();
  config.exec = Hangs();
  Credentials credentials(config);
  std::jthread first([&] { (void)credentials.Get(Credentials::Clock::now() + 20s); });
  EXPECT_TRUE(Becomes([&] { return ChildRuns(); }));
  const auto got = credentials.Get(Credentials::Clock::now() + 10ms);
  stop.request_stop();
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().message,
            "no credential before the deadline: still waiting for " + config.exec.command);
}

TEST_F(CredentialsTest, WhoeverComesWhileAPluginRunsGetsItsAnswer) {
  ClientConfig config;
  config.exec = Plugin(Count() + "while [ ! -e " + (dir_ / "go").string() +
                       " ]; do sleep 0.01; done\n" + Print(R"({"token": "one"})"));
  Credentials credentials(config);
  const auto expect_one = [&] {
    const auto got = credentials.Get(Credentials::Clock::now() + 20s);
    EXPECT_EQ(got ? got->token : got.error().message, "one");
  };
  std::jthread first(expect_one);
  EXPECT_TRUE(Becomes([&] { return Runs() == 1; }));
  std::jthread second(expect_one);
  EXPECT_TRUE(credentials.Expire({.token = "refused"}, Credentials::Clock::now() + 10ms))
      << "and does not wait for the plugin beyond its deadline";
  EXPECT_EQ(Runs(), 1);
  Write("go", "");
  first.join();
  second.join();
  EXPECT_EQ(Runs(), 1);
}

// How credentials age, with the test's clock.
class CredentialsAgeTest : public CredentialsTest {
 protected:
  void Use(const ClientConfig& config) {
    credentials_.emplace(config, [this] { return now_; });
  }
  // The token, or the error.
  std::string Token() {
    const auto got = credentials_->Get(Credentials::Clock::now() + 20s);
    return got ? got->token : got.error().message;
  }
  static Credentials::Clock::time_point Soon() { return Credentials::Clock::now() + 20s; }
  void WriteFiles(const testing::KeyPair& pair) const {
    Write("c.crt", pair.cert_pem);
    Write("c.key", pair.key_pem);
  }
  ClientConfig WithFiles(const testing::KeyPair& pair) const {
    WriteFiles(pair);
    ClientConfig config;
    config.client_cert_file = dir_ / "c.crt";
    config.client_key_file = dir_ / "c.key";
    return config;
  }
  std::string Certificate() { return credentials_->Get({})->client_cert_pem; }

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
  const testing::KeyPair one = authority_.Issue(), two = authority_.Issue();
  Use(WithFiles(one));
  EXPECT_EQ(Certificate(), one.cert_pem);
  WriteFiles(two);
  EXPECT_EQ(Certificate(), one.cert_pem);
  now_ += 60s;
  EXPECT_EQ(Certificate(), two.cert_pem);
  EXPECT_EQ(credentials_->Get({})->client_key_pem, two.key_pem);
}

TEST_F(CredentialsAgeTest, WhileCertificateAndKeyAreReplacedTheOldPairServes) {
  const testing::KeyPair one = authority_.Issue(), two = authority_.Issue();
  Use(WithFiles(one));
  EXPECT_EQ(Certificate(), one.cert_pem);
  Write("c.crt", two.cert_pem);
  now_ += 60s;
  EXPECT_EQ(Certificate(), one.cert_pem) << "the key is still that of the first";
  EXPECT_EQ(credentials_->Get({})->client_key_pem, one.key_pem);
  Write("c.key", two.key_pem);
  now_ += 5s;
  EXPECT_EQ(Certificate(), two.cert_pem);
  EXPECT_EQ(credentials_->Get({})->client_key_pem, two.key_pem);
}

TEST_F(CredentialsAgeTest, APairThatNeverFittedIsAnError) {
  Use(WithFiles({authority_.Issue().cert_pem, authority_.Issue().key_pem}));
  EXPECT_THAT(Token(), HasSubstr("don't belong together"));
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

TEST_F(CredentialsAgeTest, WhatIsRefusedToSeveralIsAskedForAgainOnceForAllOfThem) {
  ClientConfig config;
  config.exec = FirstAndThen(Print(R"({"token": "one"})"), Print(R"({"token": "two"})"));
  Use(config);
  const auto refused = credentials_->Get(Credentials::Clock::now() + 20s);
  ASSERT_TRUE(refused.has_value()) << refused.error().message;
  EXPECT_TRUE(credentials_->Expire(*refused, Soon()));
  EXPECT_TRUE(credentials_->Expire(*refused, Soon())) << "whoever is second may ask again, too";
  EXPECT_EQ(Token(), "two");
  EXPECT_TRUE(credentials_->Expire(*refused, Soon())) << "there is a new one to try";
  EXPECT_EQ(Token(), "two");
  EXPECT_EQ(Runs(), 2);
}

TEST_F(CredentialsAgeTest, AnOldCertificateThatIsRefusedSaysNothingOfTheNewOne) {
  const testing::KeyPair two = authority_.Issue();
  Use(WithFiles(authority_.Issue()));
  const auto old = credentials_->Get({});
  ASSERT_TRUE(old.has_value()) << old.error().message;
  WriteFiles(two);
  EXPECT_TRUE(credentials_->Expire(*old, Soon()));
  EXPECT_EQ(Certificate(), two.cert_pem);
  WriteFiles(authority_.Issue());
  EXPECT_TRUE(credentials_->Expire(*old, Soon()));
  EXPECT_EQ(Certificate(), two.cert_pem) << "which nobody has refused";
}

TEST_F(CredentialsAgeTest, WhatIsFixedIsGivenAsItIsAndNotAskedForAgain) {
  ClientConfig config;
  config.token = "one";
  config.client_cert_pem = "certificate";
  config.client_key_pem = "key";
  Use(config);
  const auto got = credentials_->Get({});
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(got->token, "one");
  EXPECT_EQ(got->client_cert_pem, "certificate");
  EXPECT_EQ(got->client_key_pem, "key");
  EXPECT_FALSE(credentials_->Expire(*got, Soon()));
}

TEST_F(CredentialsAgeTest, WhatIsFixedStandsBesideWhatIsRead) {
  ClientConfig config;
  config.client_cert_pem = "fixed certificate";
  config.client_key_pem = "fixed key";
  config.token_file = Write("token", "one");
  Use(config);
  const auto got = credentials_->Get({});
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(got->client_cert_pem, "fixed certificate");
  EXPECT_EQ(got->client_key_pem, "fixed key");
  ClientConfig with_files = WithFiles(authority_.Issue());
  with_files.token = "fixed";
  Use(with_files);
  EXPECT_EQ(Token(), "fixed");
}

TEST_F(CredentialsAgeTest, ATokenIsTheFirstWordOfItsFile) {
  ClientConfig config;
  config.token_file = Write("token", "\n one two\n");
  Use(config);
  EXPECT_EQ(Token(), "one");
}

TEST_F(CredentialsAgeTest, ATokenIsMadeOfCharactersThatAreSeen) {
  ClientConfig config;
  for (const std::string good : {"!", "~", "a.b-c_d/e+f="}) {
    config.exec = Plugin(Print(Json{{"token", good}}.dump()));
    Use(config);
    EXPECT_EQ(Token(), good);
  }
  for (const std::string bad : {"a b", " a", "a\x1f", "a\x7f", "a\u0080", "\u00e9"}) {
    config.exec = Plugin(Print(Json{{"token", bad}}.dump()));
    Use(config);
    EXPECT_EQ(Token(), "credential plugin " + config.exec.command +
                           " printed a token with characters that no token has");
  }
  config.exec = {};
  config.token_file = Write("token", "a\x7f");
  Use(config);
  EXPECT_EQ(Token(),
            "the token in " + config.token_file.string() + " has characters that no token has");
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

}  // namespace
}  // namespace ringmaster::kube
