#include "operator/app/status_endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/runtime/testing/scripted_api.h"

namespace ringmaster::app {
namespace {

using testing::SizeIs;

class StatusEndpointsTest : public testing::Test {
 protected:
  bool Listen(const StatusEndpoints::Addresses& addresses,
              std::shared_ptr<kube::KubeApi> reviews = nullptr) {
    return endpoints_.Listen(addresses,
                             {.not_alive = [this] { return not_alive_; },
                              .not_ready = [this] { return not_ready_; },
                              .metrics = [] { return std::string("some_metric 1\n"); }},
                             std::move(reviews));
  }
  void TearDown() override { endpoints_.Stop(); }

  // Set between two requests.
  std::vector<std::string> not_alive_, not_ready_;
  StatusEndpoints endpoints_;
};

constexpr char kAnyPort[] = "127.0.0.1:0";

TEST_F(StatusEndpointsTest, WhatIsWrongIsTheAnswerLineByLine) {
  ASSERT_TRUE(Listen({.health = kAnyPort, .metrics = ""}));
  ASSERT_THAT(endpoints_.ports(), SizeIs(1));
  httplib::Client client("127.0.0.1", endpoints_.ports()[0]);
  EXPECT_EQ(client.Get("/healthz")->body, "ok\n");
  EXPECT_EQ(client.Get("/readyz")->status, 200);
  EXPECT_EQ(client.Get("/metrics")->status, 404) << "it has no address";
  not_ready_ = {"the first reason", "the second"};
  EXPECT_EQ(client.Get("/readyz")->status, 503);
  EXPECT_EQ(client.Get("/readyz")->body, "the first reason\nthe second\n");
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  not_alive_ = {"it hangs"};
  EXPECT_EQ(client.Get("/healthz")->body, "it hangs\n");
}

TEST_F(StatusEndpointsTest, OneAddressMayServeAll) {
  ASSERT_TRUE(Listen({.health = kAnyPort, .metrics = kAnyPort}));
  ASSERT_THAT(endpoints_.ports(), SizeIs(1));
  httplib::Client client("127.0.0.1", endpoints_.ports()[0]);
  EXPECT_EQ(client.Get("/readyz")->body, "ok\n");
  EXPECT_EQ(client.Get("/metrics")->body, "some_metric 1\n");
  EXPECT_EQ(client.Get("/metrics")->get_header_value("Content-Type"),
            "text/plain; version=0.0.4; charset=utf-8");
}

TEST_F(StatusEndpointsTest, MetricsAtAnAddressOfTheirOwnAreOpenWithoutReviews) {
  ASSERT_TRUE(Listen({.health = "127.0.0.1:0", .metrics = "localhost:0"}));
  ASSERT_THAT(endpoints_.ports(), SizeIs(2));
  EXPECT_EQ(httplib::Client("127.0.0.1", endpoints_.ports()[0]).Get("/metrics")->status, 404);
  EXPECT_EQ(httplib::Client("localhost", endpoints_.ports()[1]).Get("/metrics")->body,
            "some_metric 1\n");
}

TEST_F(StatusEndpointsTest, WithReviewsMetricsAreOverTlsForThoseWhomTheApiServerAllowsThem) {
  ASSERT_TRUE(
      Listen({.health = "", .metrics = kAnyPort}, std::make_shared<runtime::ScriptedApi>()));
  ASSERT_THAT(endpoints_.ports(), SizeIs(1));
  httplib::SSLClient client("127.0.0.1", endpoints_.ports()[0]);
  client.enable_server_certificate_verification(false);
  const auto answer = client.Get("/metrics");
  ASSERT_TRUE(answer) << "it speaks TLS";
  EXPECT_EQ(answer->status, 401) << "a request without a token";
}

TEST_F(StatusEndpointsTest, AnAddressThatIsTakenIsAFailure) {
  ASSERT_TRUE(Listen({.health = kAnyPort, .metrics = ""}));
  const std::string taken = "127.0.0.1:" + std::to_string(endpoints_.ports()[0]);
  StatusEndpoints second;
  EXPECT_FALSE(second.Listen({.health = "", .metrics = taken}, {}, nullptr));
  EXPECT_THAT(second.ports(), SizeIs(0));
}

}  // namespace
}  // namespace ringmaster::app
