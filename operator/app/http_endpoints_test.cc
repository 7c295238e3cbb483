#include "operator/app/http_endpoints.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>

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
  EXPECT_EQ(client.Post("/healthz", "", "text/plain")->status, 404);
}

TEST(HttpEndpoints, ClientsThatSayNothingDoNotKeepOthersOut) {
  auto endpoints = Open({{"/healthz", [] { return HttpAnswer{.body = "ok\n"}; }}});
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(endpoints->port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<int> silent;
  for (int i = 0; i < 6; ++i) {
    silent.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(silent.back(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  httplib::Client client("127.0.0.1", endpoints->port());
  client.set_read_timeout(20);
  const auto answer = client.Get("/healthz");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "ok\n");
  for (const int fd : silent) close(fd);
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
