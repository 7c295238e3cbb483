#include "common/http/fetch.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <thread>

#include "common/http/server.h"

namespace ringmaster::http {
namespace {

using std::chrono::milliseconds;

// A server that answers every request with the same text.
class FetchTest : public testing::Test {
 protected:
  void Serve(const Response& response, const ServerLimits& limits = {}) {
    asio::ip::tcp::acceptor acceptor(loop_, {asio::ip::address_v4::loopback(), 0});
    server_ = Server::Start(
        std::move(acceptor),
        [this, response](const Request& request) {
          path_ = request.path;
          token_ = request.Header("ringmaster-token");
          return response;
        },
        limits);
    address_ = "127.0.0.1:" + std::to_string(server_->port());
    thread_ = std::thread([this] { loop_.run(); });
  }
  void TearDown() override { Stop(); }
  void Stop() {
    if (!thread_.joinable()) return;
    asio::post(loop_, [this] { server_->Stop(); });
    thread_.join();
  }

  asio::io_context loop_{1};
  std::unique_ptr<Server> server_;
  std::string address_, path_, token_;
  std::thread thread_;
};

TEST_F(FetchTest, BringsTheBodyAndSendsTheHeaders) {
  Serve({.body = "{}"});
  EXPECT_EQ(Fetch(address_, "/status",
                  {.deadline = milliseconds(20'000), .headers = {{"Ringmaster-Token", "t"}}}),
            "{}");
  Stop();
  EXPECT_EQ(path_, "/status");
  EXPECT_EQ(token_, "t");
}

TEST_F(FetchTest, WithoutAFileToOpenThereIsNoAnswer) {
  Serve({.body = "{}"});
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{3, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  std::optional<std::string> body = "nothing was asked";
  EXPECT_NO_THROW(body = Fetch(address_, "/status", {.deadline = milliseconds(20'000)}));
  EXPECT_EQ(body, std::nullopt);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST_F(FetchTest, WhatIsNo200IsNoAnswer) {
  Serve({.status = 401, .body = "{}"});
  EXPECT_EQ(Fetch(address_, "/status", {.deadline = milliseconds(20'000)}), std::nullopt);
}

TEST_F(FetchTest, AnAnswerThatIsTooLongIsNone) {
  Serve({.body = std::string(10'000, 'x')});
  EXPECT_EQ(Fetch(address_, "/", {.deadline = milliseconds(20'000), .most_bytes = 5'000}),
            std::nullopt);
}

TEST_F(FetchTest, AnAnswerWithoutEndIsGivenUpAtTheDeadline) {
  Serve({.body = "", .next = [] { return "x"; }}, {.stream_life = milliseconds(600'000)});
  EXPECT_EQ(Fetch(address_, "/", {.deadline = milliseconds(200), .most_bytes = 1 << 30}),
            std::nullopt);
}

TEST_F(FetchTest, NoNameIsLookedUp) {
  for (const char* address :
       {"localhost:1", "", ":", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999"})
    EXPECT_EQ(Fetch(address, "/", {}), std::nullopt) << address;
}

}  // namespace
}  // namespace ringmaster::http
