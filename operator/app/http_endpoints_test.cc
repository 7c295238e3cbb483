#include "operator/app/http_endpoints.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

namespace ringmaster::app {
namespace {

using testing::HasSubstr;

std::unique_ptr<HttpEndpoints> Open(HttpEndpoints::Answers answers) {
  auto opened = HttpEndpoints::Listen("--health-listen", "127.0.0.1:0", std::move(answers));
  EXPECT_TRUE(opened) << opened.error().message;
  return opened ? std::move(*opened) : nullptr;
}

TEST(HttpEndpoints, AnswerWhatIsAskedForAtThatMoment) {
  std::atomic<int> status{503};
  auto endpoints = Open(
      {{"/readyz", [&] { return HttpAnswer{.status = status.load(), .body = "the reason\n"}; }},
       {"/healthz", [] { return HttpAnswer{.body = "ok\n"}; }}});
  httplib::Client client("127.0.0.1", endpoints->port());
  EXPECT_EQ(client.Get("/healthz")->body, "ok\n");
  EXPECT_EQ(client.Get("/readyz")->status, 503);
  EXPECT_EQ(client.Get("/readyz")->body, "the reason\n");
  status = 200;
  EXPECT_EQ(client.Get("/readyz?verbose")->status, 200);
  EXPECT_EQ(client.Get("/nothing")->status, 404);
  EXPECT_THAT(client.Get("/nothing")->body, HasSubstr("/healthz /readyz"));
  EXPECT_EQ(client.Post("/healthz", "", "text/plain")->status, 405);
}

TEST(HttpEndpoints, AllAddressesAreThoseOfBothFamilies) {
  auto endpoints = HttpEndpoints::Listen("--health-listen", "0.0.0.0:0",
                                         {{"/healthz", [] { return HttpAnswer{.body = "ok\n"}; }}});
  ASSERT_TRUE(endpoints) << endpoints.error().message;
  for (const char* host : {"127.0.0.1", "::1"}) {
    httplib::Client client(host, (*endpoints)->port());
    const auto answer = client.Get("/healthz");
    ASSERT_TRUE(answer) << host;
    EXPECT_EQ(answer->body, "ok\n");
  }
}

int Connected(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

TEST(HttpEndpoints, ClientsThatDripBytesDoNotKeepOthersOut) {
  auto endpoints = Open({{"/healthz", [] { return HttpAnswer{.body = "ok\n"}; }}});
  std::vector<int> slow;
  for (int i = 0; i < 300; ++i) slow.push_back(Connected(endpoints->port()));
  std::jthread drip([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (const int fd : slow) send(fd, "x", 1, MSG_NOSIGNAL);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  httplib::Client client("127.0.0.1", endpoints->port());
  client.set_read_timeout(20);
  const auto answer = client.Get("/healthz");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "ok\n");
  drip.request_stop();
  drip.join();
  for (const int fd : slow) close(fd);
}

TEST(HttpEndpoints, ABodyWithoutEndIsNotTaken) {
  auto endpoints = Open({{"/healthz", [] { return HttpAnswer{.body = "ok\n"}; }}});
  const int fd = Connected(endpoints->port());
  const auto sent = [fd](const std::string& text) {
    return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  };
  ASSERT_TRUE(sent("POST /healthz HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"));
  const std::string chunk = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  int chunks = 0;
  while (chunks < 1000 && sent(chunk)) ++chunks;
  EXPECT_LT(chunks, 1000);
  close(fd);
}

TEST(HttpEndpoints, AnAddressThatIsTakenOrWrongIsNamedWithItsFlag) {
  auto first = Open({});
  const std::string taken = "127.0.0.1:" + std::to_string(first->port());
  const auto second = HttpEndpoints::Listen("--metrics-listen", taken, {});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("--metrics-listen"));
  EXPECT_THAT(second.error().message, HasSubstr(taken));
  const auto wrong = HttpEndpoints::Listen("--metrics-listen", "nowhere", {});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("host:port"));
}

}  // namespace
}  // namespace ringmaster::app
