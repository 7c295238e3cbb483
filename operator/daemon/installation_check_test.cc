#include "operator/daemon/installation_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "common/http/server.h"

namespace ringmaster::daemon {
namespace {

using asio::ip::tcp;
using testing::HasSubstr;

constexpr char kLeads[] =
    "# HELP ringmaster_operator_leader 1: ...\n"
    "ringmaster_operator_cache_synced{resource=\"pods\"} 1\n"
    "ringmaster_operator_leader 1\n";

class InstallationCheckTest : public testing::Test {
 protected:
  // An operator: a port that sidecars can dial, and one that serves `first` at the first request
  // for metrics, `later` at the others.
  void Serve(const std::string& first, const std::string& later) {
    server_ = http::Server::Start(Listening(), [this, first, later](const http::Request& request) {
      return http::Response{.status = request.path == "/metrics" ? 200 : 404,
                            .body = asked_++ == 0 ? first : later};
    });
    installation_ = {.grpc = Local(grpc_.local_endpoint().port()),
                     .metrics = Local(static_cast<unsigned short>(server_->port())),
                     .wait = std::chrono::seconds(0)};
    thread_ = std::thread([this] { loop_.run(); });
  }
  void Serve(const std::string& metrics) { Serve(metrics, metrics); }
  void TearDown() override {
    if (!thread_.joinable()) return;
    asio::post(loop_, [this] { server_->Stop(); });
    thread_.join();
  }
  tcp::acceptor Listening() {
    return tcp::acceptor(loop_, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  }
  static std::string Local(unsigned short port) { return "localhost:" + std::to_string(port); }
  // What was found, or the error.
  std::string Check() const {
    const auto found = CheckInstallation(installation_);
    return found ? *found : "error: " + found.error();
  }

  asio::io_context loop_;
  tcp::acceptor grpc_ = Listening();
  std::unique_ptr<http::Server> server_;
  std::atomic<int> asked_ = 0;
  std::thread thread_;
  InstallationToCheck installation_;
};

TEST_F(InstallationCheckTest, AnOperatorThatLeadsAndCanBeDialledPasses) {
  Serve(kLeads);
  EXPECT_EQ(Check(), "a replica leads\nits caches are filled\nsidecars can dial " +
                         installation_.grpc + "\n");
}

TEST_F(InstallationCheckTest, WithoutMetricsOnlyThePortIsLookedAt) {
  Serve("");
  installation_.metrics = "";
  EXPECT_EQ(Check(), "sidecars can dial " + installation_.grpc + "\n");
  EXPECT_EQ(asked_, 0);
}

TEST_F(InstallationCheckTest, AReplicaThatDoesNotLeadIsNotEnough) {
  Serve("ringmaster_operator_leader 0\n");
  EXPECT_EQ(Check(), "error: no replica leads after 0 s");
}

TEST_F(InstallationCheckTest, ACacheThatIsNotFilledIsNamed) {
  std::string metrics = kLeads;
  metrics += "ringmaster_operator_cache_synced{resource=\"nodes\"} 0\n";
  Serve(metrics);
  EXPECT_THAT(Check(), HasSubstr("error: not listed yet: "
                                 "ringmaster_operator_cache_synced{resource=\"nodes\"}"));
}

TEST_F(InstallationCheckTest, WhatDoesNotAnswerIsNamed) {
  Serve(kLeads);
  grpc_.close();
  EXPECT_EQ(Check(), "error: " + installation_.grpc + " is not open");
  for (const char* nowhere : {"localhost", "localhost:1", "no-such-host.invalid:80", "[::1]:1"}) {
    installation_.metrics = nowhere;
    EXPECT_EQ(Check(), std::string("error: ") + nowhere + " does not serve /metrics");
  }
}

TEST_F(InstallationCheckTest, AReplicaHasTimeUntilItLeads) {
  Serve("ringmaster_operator_leader 0\n", kLeads);
  installation_.wait = std::chrono::seconds(20);
  EXPECT_THAT(Check(), HasSubstr("a replica leads"));
  EXPECT_EQ(asked_, 2);
}

TEST(InstallationCheckCommandTest, BadUsageIsTwo) {
  char name[] = "check", flag[] = "--grpc", value[] = "a:1", wait[] = "--wait", no[] = "soon";
  char* none[] = {name};
  EXPECT_EQ(RunInstallationCheck(1, none), 2);
  char* wrong[] = {name, flag, value, wait, no};
  EXPECT_EQ(RunInstallationCheck(5, wrong), 2);
}

}  // namespace
}  // namespace ringmaster::daemon
