#include "operator/daemon/page_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <thread>

#include "common/http/server.h"
#include "operator/local/store.h"
#include "operator/local/testing/in_memory_api.h"

namespace ringmaster::daemon {
namespace {

using nlohmann::json;

// A sidecar that answers on loopback, and the caches of an operator with its pod.
class PageSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    asio::ip::tcp::acceptor acceptor(loop_, {asio::ip::address_v4::loopback(), 0});
    sidecar_ = http::Server::Start(std::move(acceptor), [this](const http::Request&) {
      ++asked_;
      return http::Response{
          .content_type = "application/json",
          .body =
              R"({"job":{"name":"digits"},"pod":{"name":"digits-worker-0"},"coordinator":true})"};
    });
    port_ = std::to_string(sidecar_->port());
    thread_ = std::thread([this] { loop_.run(); });
  }
  void TearDown() override {
    asio::post(loop_, [this] { sidecar_->Stop(); });
    thread_.join();
  }

  static json Job(const std::string& uid) {
    return {{"metadata", {{"namespace", "default"}, {"name", "digits"}, {"uid", uid}}},
            {"spec", {{"worker", {{"replicas", 2}, {"template", {{"long", "text"}}}}}}},
            {"status", {{"state", "Running"}}}};
  }
  static json Pod(const std::string& job_uid, const std::string& ip, const std::string& address) {
    return {{"metadata",
             {{"namespace", "default"},
              {"name", "digits-worker-0"},
              {"labels", {{"ringmaster.dev/job-uid", job_uid}}},
              {"annotations", {{"ringmaster.dev/http", address}}}}},
            {"status", {{"phase", "Running"}, {"podIP", ip}}}};
  }
  cli::Inspection Look(const json& pod) {
    PageSource source(
        [&] {
          app::OperatorSample sample;
          sample.jobs.push_back(std::make_shared<json>(Job("u")));
          sample.pods.push_back(std::make_shared<json>(pod));
          return sample;
        },
        api_);
    auto jobs = source.Jobs();
    EXPECT_EQ(jobs->size(), 1u);
    EXPECT_FALSE(jobs->front()["spec"]["worker"].contains("template"));
    return *source.Inspect(jobs->front());
  }

  const std::shared_ptr<local::InMemoryApi> api_ =
      std::make_shared<local::InMemoryApi>(std::make_shared<local::Store>(local::StoreOptions{}));
  asio::io_context loop_{1};
  std::unique_ptr<http::Server> sidecar_;
  std::string port_;
  std::atomic<int> asked_{0};
  std::thread thread_;
};

TEST_F(PageSourceTest, AsksTheSidecarsOfTheJobsPods) {
  const auto look = Look(Pod("u", "127.0.0.1", "127.0.0.1:" + port_));
  ASSERT_EQ(look.answers.size(), 1u);
  EXPECT_TRUE(look.answers.at("digits-worker-0").coordinator);
  EXPECT_EQ(look.pods.size(), 1u);
}

TEST_F(PageSourceTest, APodOfAnotherJobOfThatNameIsNotAsked) {
  EXPECT_TRUE(Look(Pod("another", "127.0.0.1", "127.0.0.1:" + port_)).pods.empty());
  EXPECT_EQ(asked_, 0);
}

TEST_F(PageSourceTest, AnAddressThatIsNotThePodsOwnIsNotAsked) {
  for (const std::string ip : {"10.0.0.9", "127.0.0.10", "127.0.0.", ""}) {
    const auto look = Look(Pod("u", ip, "127.0.0.1:" + port_));
    EXPECT_EQ(look.pods.size(), 1u);
    EXPECT_TRUE(look.answers.empty()) << ip;
  }
  EXPECT_EQ(asked_, 0);
}

}  // namespace
}  // namespace ringmaster::daemon
