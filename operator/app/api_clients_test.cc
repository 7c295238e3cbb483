#include "operator/app/api_clients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/support/until.h"

namespace ringmaster::app {
namespace {

using testing::HasSubstr;

// An API server that knows every object, and remembers who has asked last.
class AnsweringServer {
 public:
  AnsweringServer() {
    server_.Get(".*", [this](const httplib::Request& request, httplib::Response& response) {
      user_agent_ = request.get_header_value("User-Agent");
      response.set_content(R"({"kind":"ConfigMap","metadata":{"name":"a"}})", "application/json");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~AnsweringServer() {
    EXPECT_TRUE(support::Until([this] { return server_.is_running(); }));
    server_.stop();
    thread_.join();
  }
  kube::ClientConfig config() const {
    kube::ClientConfig config;
    config.host = "127.0.0.1";
    config.port = port_;
    config.tls = false;
    return config;
  }
  // Of the last answered call.
  const std::string& user_agent() const { return user_agent_; }

 private:
  httplib::Server server_;
  int port_ = 0;
  std::string user_agent_;
  std::thread thread_;
};

TEST(ApiClientsTest, EachClientNamesTheVersionAndCountsIntoTheMetrics) {
  AnsweringServer server;
  OperatorMetrics metrics("1.2.3");
  const ApiClients clients(server.config(), {}, "1.2.3", &metrics);
  for (const kube::ClientConfig& config : {clients.ForOperator(), clients.ForStrangers()}) {
    const auto api = ApiClients::Connect(config);
    ASSERT_NE(api, nullptr);
    EXPECT_TRUE(api->Get(kube::ConfigMaps(), "ns", "a"));
    EXPECT_EQ(server.user_agent(), "ringmaster-operator/1.2.3");
  }
  EXPECT_THAT(metrics.Text({}), HasSubstr("ringmaster_operator_api_request_seconds_count{"
                                          "code=\"200\",resource=\"configmaps\",verb=\"get\"} 2"));
}

TEST(ApiClientsTest, StrangersHaveALowLimitOfTheirOwnThatTheServerCannotLift) {
  OperatorMetrics metrics("1.2.3");
  kube::ClientConfig server;
  server.deadline = std::chrono::seconds(30);
  const ApiClients clients(server, {.qps = 70, .burst = 200}, "1.2.3", &metrics);
  const kube::ClientConfig own = clients.ForOperator();
  EXPECT_EQ(own.qps, 70);
  EXPECT_EQ(own.burst, 200);
  EXPECT_TRUE(own.server_may_lift_limit);
  EXPECT_EQ(own.deadline, std::chrono::seconds(30));
  const kube::ClientConfig strangers = clients.ForStrangers();
  EXPECT_EQ(strangers.qps, 5);
  EXPECT_EQ(strangers.burst, 20);
  EXPECT_FALSE(strangers.server_may_lift_limit);
  EXPECT_EQ(strangers.deadline, std::chrono::seconds(3));
}

TEST(ApiClientsTest, AbandonEndsTheCallsOfAllClients) {
  AnsweringServer server;
  OperatorMetrics metrics("1.2.3");
  ApiClients clients(server.config(), {}, "1.2.3", &metrics);
  const auto own = ApiClients::Connect(clients.ForOperator());
  const auto strangers = ApiClients::Connect(clients.ForStrangers());
  ASSERT_TRUE(own->Get(kube::ConfigMaps(), "ns", "a"));
  clients.Abandon();
  for (const auto& api : {own, strangers}) {
    const auto got = api->Get(kube::ConfigMaps(), "ns", "a");
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, kube::ErrorCode::kUnavailable);
  }
}

TEST(ApiClientsTest, OfWhatCannotBeReadNoClientIsMade) {
  OperatorMetrics metrics("1.2.3");
  kube::ClientConfig server;
  server.host = "127.0.0.1";
  server.ca_pem = "no certificate";
  const ApiClients clients(server, {}, "1.2.3", &metrics);
  EXPECT_EQ(ApiClients::Connect(clients.ForOperator()), nullptr);
}

}  // namespace
}  // namespace ringmaster::app
