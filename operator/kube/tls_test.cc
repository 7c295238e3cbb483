// Which servers the client trusts, and its error about others.
#include <openssl/conf.h>
#include <openssl/ssl.h>

#include "operator/kube/testing/client_fixture.h"

namespace ringmaster::kube {
namespace {

using testing::Authority;
using testing::CertificateSpec;
using testing::Exchange;
using ::testing::HasSubstr;
using testing::KeyPair;
using testing::Object;
using testing::ScriptedServer;
using testing::ServerRequest;

void AnswerOk(const ServerRequest&, Exchange& exchange) { exchange.Answer(200, Object("a")); }

class TlsTest : public testing::ClientFixture {
 protected:
  // The error of a call to a server with this certificate; empty if the call succeeded.
  std::string Refusal(const CertificateSpec& spec) {
    ScriptedServer::Options options;
    options.certificate = authority_.Issue(spec);
    Serve(options, AnswerOk);
    return Refusal(Config());
  }
  // A server whose certificate is for a name that is not its host's.
  ClientConfig ServeAsKubernetes() {
    CertificateSpec named;
    named.san = "DNS:kubernetes.default.svc";
    ScriptedServer::Options options;
    options.certificate = authority_.Issue(named);
    Serve(options, AnswerOk);
    return Config();
  }
  std::string Refusal(const ClientConfig& config) {
    auto got = Client(config).Get(ConfigMaps(), "ns", "a");
    if (got) return "";
    EXPECT_EQ(got.error().code, ErrorCode::kUnavailable) << got.error().message;
    EXPECT_EQ(server_->requests(), 0) << "something was sent to a server that isn't trusted";
    return got.error().message;
  }
};

TEST_F(TlsTest, ACertificateForTheHostOfTheAuthorityIsTrusted) {
  EXPECT_EQ(Refusal(CertificateSpec{}), "");
}

TEST_F(TlsTest, ACertificateForAnotherHostIsRefused) {
  CertificateSpec other;
  other.san = "DNS:elsewhere.example,IP:10.0.0.1";
  EXPECT_THAT(Refusal(other), HasSubstr("is not for \"127.0.0.1\": use a name that it is for, or "
                                        "say which one in tls-server-name"));
}

TEST_F(TlsTest, ACommonNameIsNoName) {
  CertificateSpec only_common_name;
  only_common_name.common_name = "127.0.0.1";
  only_common_name.san = "";
  EXPECT_THAT(Refusal(only_common_name), HasSubstr("is not for \"127.0.0.1\""));
}

TEST_F(TlsTest, TheServerNameOfTheConfigurationIsTheOneThatCounts) {
  ClientConfig config = ServeAsKubernetes();
  config.tls_server_name = "kubernetes.default.svc";
  EXPECT_EQ(Refusal(config), "");
  config.tls_server_name = "kubernetes.default";
  auto got = Client(config).Get(ConfigMaps(), "ns", "a");
  ASSERT_FALSE(got.has_value());
  EXPECT_THAT(got.error().message, HasSubstr("is not for \"kubernetes.default\""));
}

TEST_F(TlsTest, TheServerNameOfTheConfigurationServesWithAHostThatHasAName) {
  ClientConfig config = ServeAsKubernetes();
  config.host = "localhost";
  config.tls_server_name = "kubernetes.default.svc";
  EXPECT_EQ(Refusal(config), "");
  config.host = "nowhere.invalid";
  const auto got = Client(config).Get(ConfigMaps(), "ns", "a");
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(got.error().message, HasSubstr("can't connect to https://nowhere.invalid:"));
}

TEST_F(TlsTest, AnExpiredCertificateIsRefused) {
  CertificateSpec old;
  old.from_seconds = -7200;
  old.to_seconds = -3600;
  EXPECT_THAT(Refusal(old), HasSubstr("has expired"));
}

TEST_F(TlsTest, ACertificateOfTheFutureIsRefused) {
  CertificateSpec early;
  early.from_seconds = 3600;
  early.to_seconds = 7200;
  EXPECT_THAT(Refusal(early), HasSubstr("is this machine's clock right?"));
}

// During its life OpenSSL accepts old protocols that a machine's own configuration may allow.
class OldProtocols {
 public:
  explicit OldProtocols(const std::filesystem::path& file) {
    std::ofstream(file)
        << "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = old\n"
           "[old]\nMinProtocol = TLSv1\nCipherString = DEFAULT:@SECLEVEL=0\n";
    EXPECT_EQ(CONF_modules_load_file(file.c_str(), nullptr, 0), 1);
  }
  ~OldProtocols() { CONF_modules_finish(); }
};

// The protocol that OpenSSL alone, without our rules, agrees on with a server.
std::string SpokenWith(int port) {
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const std::shared_ptr<BIO> connection(BIO_new_ssl_connect(context.get()), BIO_free_all);
  BIO_set_conn_hostname(connection.get(), ("127.0.0.1:" + std::to_string(port)).c_str());
  if (BIO_do_connect(connection.get()) != 1) return "nothing";
  SSL* ssl = nullptr;
  BIO_get_ssl(connection.get(), &ssl);
  return SSL_get_version(ssl);
}

TEST_F(TlsTest, NothingOlderThanTls12IsSpokenWhateverTheMachineAllows) {
  const OldProtocols allowed(dir_ / "openssl.cnf");
  ScriptedServer::Options options;
  options.highest_tls = TLS1_1_VERSION;
  Serve(options, AnswerOk);
  ASSERT_EQ(SpokenWith(server_->port()), "TLSv1.1");
  EXPECT_THAT(Refusal(Config()), HasSubstr("doesn't speak TLS 1.2 or newer"));
  options.highest_tls = TLS1_2_VERSION;
  Serve(options, AnswerOk);
  EXPECT_EQ(Refusal(Config()), "");
}

TEST_F(TlsTest, AnotherAuthoritysServerIsRefused) {
  Serve(AnswerOk);
  ClientConfig config = Config();
  config.ca_pem = Authority("another").pem();
  EXPECT_THAT(Refusal(config), HasSubstr("is not signed by the configured certificate authority"));
  config.ca_pem.clear();
  EXPECT_THAT(Refusal(config), HasSubstr("is not signed by one of this machine's authorities"));
}

// During its life this machine's own authorities are those of the file.
class MachinesAuthorities {
 public:
  MachinesAuthorities(const std::filesystem::path& file, const std::string& pem) {
    std::ofstream(file) << pem;
    setenv("SSL_CERT_FILE", file.c_str(), 1);
  }
  ~MachinesAuthorities() { unsetenv("SSL_CERT_FILE"); }
};

TEST_F(TlsTest, TheMachinesAuthoritiesAreTrustedOnlyWhereNoneIsConfigured) {
  const Authority machines("an authority of the machine");
  const MachinesAuthorities installed(dir_ / "machine.pem", machines.pem());
  ScriptedServer::Options options;
  options.certificate = machines.Issue();
  Serve(options, AnswerOk);
  EXPECT_THAT(Refusal(Config()), HasSubstr("is not signed by the configured"));
  ClientConfig config = Config();
  config.ca_pem.clear();
  EXPECT_EQ(Refusal(config), "");
}

TEST_F(TlsTest, AServerThatSendsItsChainIsTrustedByTheRoot) {
  Authority between = authority_.Intermediate("between");
  ScriptedServer::Options options;
  options.certificate = between.Issue();
  options.chain_pem = between.pem();
  Serve(options, AnswerOk);
  EXPECT_EQ(Refusal(Config()), "");
}

TEST_F(TlsTest, SeveralAuthoritiesMayStandInOneFile) {
  Serve(AnswerOk);
  ClientConfig config = Config();
  config.ca_pem = Authority("old").pem() + authority_.pem();
  EXPECT_EQ(Refusal(config), "");
}

TEST_F(TlsTest, AClientCertificateIsShownWithItsChain) {
  Authority clients("clients"), between = clients.Intermediate("between");
  CertificateSpec spec;
  spec.common_name = "operator";
  spec.client = true;
  KeyPair mine = between.Issue(spec);
  ScriptedServer::Options options;
  options.client_ca = clients.pem();
  std::string seen;
  Serve(options, [&](const ServerRequest& request, Exchange& exchange) {
    seen = request.client_name;
    exchange.Answer(200, Object("a"));
  });
  ClientConfig config = Config();
  config.client_cert_pem = mine.cert_pem + between.pem();
  config.client_key_pem = mine.key_pem;
  auto got = Client(config).Get(ConfigMaps(), "ns", "a");
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(seen, "operator");
}

TEST_F(TlsTest, AServerThatWantsAnotherClientCertificateIsUnavailable) {
  Authority clients("clients");
  ScriptedServer::Options options;
  options.client_ca = clients.pem();
  Serve(options, AnswerOk);
  auto got = Client().Get(ConfigMaps(), "ns", "a");
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
}

TEST_F(TlsTest, CertificatesAndKeysThatCantBeUsedAreNamedBeforeAnyCall) {
  Serve(AnswerOk);
  KeyPair one = authority_.Issue(), two = authority_.Issue();
  struct Case {
    std::string ca, cert, key, message;
  };
  for (const Case& c :
       {Case{"junk", "", "", "the certificate authority for https://127.0.0.1"},
        Case{authority_.pem(), "junk", one.key_pem, "the client certificate for"},
        Case{authority_.pem(), one.cert_pem, "", "the client key for"},
        Case{authority_.pem(), one.cert_pem, "junk", "not an unencrypted PEM key"},
        Case{authority_.pem(), one.cert_pem, two.key_pem, "don't belong together"}}) {
    ClientConfig config = Config();
    config.ca_pem = c.ca;
    config.client_cert_pem = c.cert;
    config.client_key_pem = c.key;
    auto client = MakeKubeClient(config);
    ASSERT_FALSE(client.has_value()) << c.message;
    EXPECT_EQ(client.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(client.error().message, HasSubstr(c.message));
  }
}

TEST_F(TlsTest, AnAuthorityThatIsReplacedOnDiskIsTrustedWithoutARestart) {
  Authority next("the next authority");
  ClientConfig config;
  ScriptedServer::Options options;
  Serve(options, AnswerOk);
  config = Config();
  config.ca_file = Write("ca.crt", authority_.pem());
  KubeApi& api = Client(config);
  ASSERT_TRUE(api.Get(ConfigMaps(), "ns", "a").has_value());
  // The server returns with a certificate of the new authority, on another port: a second client
  // with the same configuration stands for the first.
  options.certificate = next.Issue();
  Serve(options, AnswerOk);
  config.port = server_->port();
  KubeApi& restarted = Client(config);
  auto before = restarted.Get(ConfigMaps(), "ns", "a");
  ASSERT_FALSE(before.has_value());
  EXPECT_THAT(before.error().message, HasSubstr("is not signed by"));
  Write("ca.crt", "half a cert");  // incomplete: the earlier text is used
  EXPECT_FALSE(restarted.Get(ConfigMaps(), "ns", "a").has_value());
  Write("ca.crt", next.pem());
  auto after = restarted.Get(ConfigMaps(), "ns", "a");
  EXPECT_TRUE(after.has_value()) << after.error().message;
}

}  // namespace
}  // namespace ringmaster::kube
