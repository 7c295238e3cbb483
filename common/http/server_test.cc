// Clients that send what no client should, and whether other clients are still served. The test
// uses raw sockets, because no HTTP library would send this.
#include "common/http/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <thread>

#include "common/tls/certificate.h"

namespace ringmaster::http {
namespace {

using std::chrono::milliseconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr milliseconds kPatience{20'000};

class Client {
 public:
  explicit Client(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  Client(Client&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Client() {
    if (fd_ >= 0) close(fd_);
  }
  // False: the server has ended the connection.
  bool Send(const std::string& text) const {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // Returns all bytes that come until the server ends the connection.
  std::string ReadToEnd() const {
    std::string text;
    char buffer[4096];
    pollfd ready{fd_, POLLIN, 0};
    while (poll(&ready, 1, static_cast<int>(kPatience.count())) == 1) {
      const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
      if (n <= 0) return text;
      text.append(buffer, static_cast<std::size_t>(n));
    }
    ADD_FAILURE() << "the server does not end the connection";
    return text;
  }
  // False: it has not come.
  bool ReadUntil(const std::string& end) const {
    std::string text;
    char byte = 0;
    pollfd ready{fd_, POLLIN, 0};
    while (!text.ends_with(end) && poll(&ready, 1, static_cast<int>(kPatience.count())) == 1 &&
           recv(fd_, &byte, 1, 0) == 1) {
      text += byte;
    }
    return text.ends_with(end);
  }

 private:
  int fd_;
};

class HttpServerTest : public testing::Test {
 protected:
  void Open(const ServerLimits& limits) {
    asio::ip::tcp::acceptor acceptor(loop_, {asio::ip::address_v4::loopback(), 0});
    server_ = Server::Start(
        std::move(acceptor),
        [](const Request& request) {
          return Response{.body = request.path + " " + request.Header("ringmaster-token")};
        },
        limits);
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.run(); });
  }
  // Serves streams: every answer goes on with these parts, and after them `next` returns `then`.
  void OpenStreams(std::vector<std::string> parts, std::optional<std::string> then,
                   const ServerLimits& limits) {
    asio::ip::tcp::acceptor acceptor(loop_, {asio::ip::address_v4::loopback(), 0});
    server_ = Server::Start(
        std::move(acceptor),
        [parts, then](const Request&) {
          const auto next = [parts, then, at = std::size_t{0}]() mutable {
            return at < parts.size() ? parts[at++] : then;
          };
          return Response{.body = "begin", .headers = {{"X-Name", "value"}}, .next = next};
        },
        limits);
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.run(); });
  }
  void OpenTls(const tls::KeyPair& pair, const ServerLimits& limits = {}) {
    asio::ip::tcp::acceptor acceptor(loop_, {asio::ip::address_v4::loopback(), 0});
    server_ = Server::StartTls(
        std::move(acceptor), [](const Request& request) { return Response{.body = request.path}; },
        {pair.certificate_pem, pair.key_pem}, limits);
    if (server_ == nullptr) return;
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.run(); });
  }
  void TearDown() override {
    if (server_ == nullptr) return;
    asio::post(loop_, [this] { server_->Stop(); });
    thread_.join();
  }
  std::string Get() const {
    const Client client(port_);
    EXPECT_TRUE(client.Send("GET /healthz HTTP/1.1\r\n\r\n"));
    return client.ReadToEnd();
  }

  asio::io_context loop_{1};
  std::unique_ptr<Server> server_;
  int port_ = 0;
  std::thread thread_;
};

TEST_F(HttpServerTest, ABodyWithoutEndIsNotRead) {
  Open({});
  const Client client(port_);
  ASSERT_TRUE(client.Send("POST /healthz HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"));
  const std::string chunk = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  int chunks = 0;
  while (chunks < 1000 && client.Send(chunk)) ++chunks;
  EXPECT_LT(chunks, 1000) << "64 MB were taken from somebody who is not known";
  EXPECT_THAT(Get(), HasSubstr("/healthz"));
}

TEST_F(HttpServerTest, WhoSendsABodyHearsThatItIsRefused) {
  Open({});
  const Client client(port_);
  ASSERT_TRUE(client.Send("POST /healthz HTTP/1.1\r\nContent-Length: 5000\r\n\r\n" +
                          std::string(5000, 'x')));
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 405"));
}

TEST_F(HttpServerTest, AHeaderIsFoundInAnyCaseAndTheFirstCounts) {
  Open({});
  const Client client(port_);
  ASSERT_TRUE(
      client.Send("GET /status?x=1 HTTP/1.1\r\nHost: a\r\nno header\r\nRINGMASTER-Token:\t one \r\n"
                  "ringmaster-token: two\r\n\r\nringmaster-token: three\r\n\r\n"));
  EXPECT_THAT(client.ReadToEnd(), EndsWith("\r\n\r\n/status one"));
}

TEST_F(HttpServerTest, AQueryIsDecodedAndTheFirstOfANameCounts) {
  asio::ip::tcp::acceptor acceptor(loop_, {asio::ip::address_v4::loopback(), 0});
  server_ = Server::Start(std::move(acceptor), [](const Request& request) {
    return Response{.body = request.path + "|" + request.Parameter("job") + "|" +
                            request.Parameter("n") + "|" + request.Parameter("none")};
  });
  port_ = server_->port();
  thread_ = std::thread([this] { loop_.run(); });
  const Client client(port_);
  ASSERT_TRUE(client.Send("GET /a?job=team%2fdigits+1%zz%&n=1&n=2&&=3&none HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(client.ReadToEnd(), EndsWith("\r\n\r\n/a|team/digits 1%zz%|1|"));
}

TEST_F(HttpServerTest, AnAnswerThatGoesOnIsSentInPartsAndEnds) {
  OpenStreams({" one", "", " two"}, std::nullopt, {.tick = milliseconds(1)});
  const Client client(port_);
  ASSERT_TRUE(client.Send("GET / HTTP/1.1\r\n\r\n"));
  const std::string answer = client.ReadToEnd();
  EXPECT_THAT(answer, EndsWith("\r\n\r\nbegin one two"));
  EXPECT_THAT(answer, HasSubstr("\r\nX-Name: value\r\n"));
  EXPECT_THAT(answer, testing::Not(HasSubstr("Content-Length")));
}

TEST_F(HttpServerTest, AStreamThatHasNoEndIsEndedAfterItsLife) {
  OpenStreams(
      {" one"}, "",
      {.deadline = milliseconds(50), .stream_life = milliseconds(300), .tick = milliseconds(1)});
  const auto begin = std::chrono::steady_clock::now();
  const Client client(port_);
  ASSERT_TRUE(client.Send("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(client.ReadToEnd(), EndsWith("begin one"));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(300))
      << "the deadline of a request has ended it";
}

TEST_F(HttpServerTest, OfTooManyStreamsTheNewOneIsRefused) {
  OpenStreams({}, "", {.streams = 1, .tick = milliseconds(1)});
  const Client first(port_);
  ASSERT_TRUE(first.Send("GET / HTTP/1.1\r\n\r\n"));
  ASSERT_TRUE(first.ReadUntil("begin"));
  const Client second(port_);
  ASSERT_TRUE(second.Send("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(second.ReadToEnd(), StartsWith("HTTP/1.1 503"));
}

TEST_F(HttpServerTest, AStreamWhoseClientDoesNotReadIsEnded) {
  OpenStreams({}, std::string(1 << 20, 'x'),
              {.deadline = milliseconds(300), .streams = 1, .tick = milliseconds(1)});
  const Client client(port_);
  ASSERT_TRUE(client.Send("GET / HTTP/1.1\r\n\r\n"));
  // While that stream is open there is no other.
  const auto end = std::chrono::steady_clock::now() + kPatience;
  std::string answer;
  while (std::chrono::steady_clock::now() < end) {
    const Client next(port_);
    ASSERT_TRUE(next.Send("HEAD / HTTP/1.1\r\n\r\n"));
    answer = next.ReadToEnd();
    if (answer.starts_with("HTTP/1.1 200")) break;
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 503"));
  }
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
}

class HttpsTest : public HttpServerTest {
 protected:
  const tls::KeyPair authority_ =
      *tls::MakeAuthority(std::chrono::system_clock::now(), std::chrono::hours(1));
  const tls::KeyPair pair_ = *tls::Issue(authority_, {"127.0.0.1"},
                                         std::chrono::system_clock::now(), std::chrono::hours(1));
};

TEST_F(HttpsTest, AnswersThoseWhoTrustItsCertificate) {
  OpenTls(pair_);
  httplib::SSLClient client("127.0.0.1", port_);
  client.enable_server_certificate_verification(false);
  for (int i = 0; i < 3; ++i) {
    const auto answer = client.Get("/metrics");
    ASSERT_TRUE(answer) << httplib::to_string(answer.error());
    EXPECT_EQ(answer->body, "/metrics");
  }
}

TEST_F(HttpsTest, WhoSpeaksNoTlsIsNotHeard) {
  OpenTls(pair_);
  const Client client(port_);
  ASSERT_TRUE(client.Send("GET /metrics HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(client.ReadToEnd(), testing::Not(HasSubstr("/metrics")));
}

TEST_F(HttpsTest, WhoNeverEndsItsHandshakeIsCutOff) {
  OpenTls(pair_, {.deadline = milliseconds(300)});
  const Client client(port_);
  ASSERT_TRUE(client.Send("\x16"));
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(HttpsTest, AKeyOfAnotherCertificateIsRefused) {
  OpenTls({pair_.certificate_pem, "no key"});
  EXPECT_EQ(server_, nullptr);
}

TEST_F(HttpServerTest, ARequestLineWithoutEndIsRefused) {
  Open({.request_bytes = 1024});
  const Client client(port_);
  ASSERT_TRUE(client.Send(std::string(1024, 'x')));
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 400"));
}

TEST_F(HttpServerTest, WhoDripsBytesIsCutOffAtTheDeadlineOfTheWhole) {
  Open({.deadline = milliseconds(300)});
  const Client client(port_);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (client.Send("x") && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_LT(std::chrono::steady_clock::now(), end) << "each byte has put the end off";
}

TEST_F(HttpServerTest, ManyConnectionsThatSayLittleKeepNobodyOut) {
  Open({.connections = 8, .deadline = std::chrono::minutes(10)});
  std::vector<Client> silent;
  for (int i = 0; i < 200; ++i) {
    silent.emplace_back(port_);
    (void)silent.back().Send("GET /he");
    if (i % 20 == 0) {
      EXPECT_THAT(Get(), HasSubstr("/healthz")) << i;
    }
  }
  EXPECT_EQ(silent.front().ReadToEnd(), "") << "the oldest had to go";
}

}  // namespace
}  // namespace ringmaster::http
