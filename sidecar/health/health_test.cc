#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <nlohmann/json.hpp>

#include "sidecar/health/http_server.h"
#include "sidecar/health/metrics.h"
#include "sidecar/health/rebuild_log.h"

namespace ringmaster::health {
namespace {

using asio::ip::tcp;

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = HttpServer::Listen(&loop_, "127.0.0.1", 0, [](const HttpRequest& request) {
      if (request.path == "/healthz") return HttpResponse{200, "text/plain", "ok\n"};
      return HttpResponse{404, "text/plain", "no " + request.path + "\n"};
    });
    ASSERT_TRUE(server) << server.error();
    server_ = std::move(*server);
  }

  std::string Ask(const std::string& request) {
    tcp::socket socket(loop_);
    socket.connect(
        {asio::ip::make_address("127.0.0.1"), static_cast<unsigned short>(server_->port())});
    asio::write(socket, asio::buffer(request));
    std::string answer;
    bool done = false;
    asio::async_read(socket, asio::dynamic_buffer(answer),
                     [&](std::error_code, size_t) { done = true; });
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done && std::chrono::steady_clock::now() < deadline)
      loop_.run_for(std::chrono::milliseconds(5));
    return answer;
  }

  asio::io_context loop_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersGetWithoutTheQuery) {
  std::string answer = Ask("GET /healthz?x=1 HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(answer.rfind("HTTP/1.1 200 OK\r\n", 0), 0u) << answer;
  EXPECT_NE(answer.find("\r\n\r\nok\n"), std::string::npos);
}

TEST_F(HttpServerTest, RefusesOtherMethodsGarbageAndEndlessRequests) {
  EXPECT_NE(Ask("POST /healthz HTTP/1.1\r\n\r\n").find("405"), std::string::npos);
  EXPECT_NE(Ask("\x16\x03\x01 hello\r\n\r\n").find("400"), std::string::npos);
  EXPECT_NE(Ask("GET / HTTP/1.1\r\nX: " + std::string(20000, 'x')).find("400"), std::string::npos);
  EXPECT_NE(Ask("GET /nothing HTTP/1.1\r\n\r\n").find("404"), std::string::npos);
}

TEST(HttpServer, NamesTheVariableWhenThePortIsInUse) {
  asio::io_context loop;
  auto first = HttpServer::Listen(&loop, "127.0.0.1", 0, {});
  ASSERT_TRUE(first) << first.error();
  const auto taken = HttpServer::Listen(&loop, "127.0.0.1", (*first)->port(), {});
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().find("RINGMASTER_HTTP_PORT"), std::string::npos) << taken.error();
  const auto nowhere = HttpServer::Listen(&loop, "nohost", 0, {});
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().find("RINGMASTER_BIND"), std::string::npos) << nowhere.error();
}

TEST(Metrics, AreServedAsPrometheusReadsThem) {
  Metrics metrics("default", "digits", "digits-worker-0");
  metrics.SetWorldSize(4);
  metrics.ObserveRebuild("connect", "WorkerLost", 0.004);
  for (int i = 0; i < 1000; ++i) metrics.SetValue("v" + std::to_string(i), i);
  std::string text = metrics.Text();
  EXPECT_NE(text.find("ringmaster_sidecar_world_size{"), std::string::npos) << text;
  EXPECT_NE(text.find("phase=\"connect\""), std::string::npos);
  EXPECT_NE(text.find("name=\"v63\""), std::string::npos);
  EXPECT_EQ(text.find("name=\"v64\""), std::string::npos)
      << "names without end must not eat the memory";
}

TEST(Metrics, OfAGpuXidsAreCountedByNumber) {
  Metrics metrics("default", "digits", "digits-worker-0");
  metrics.SetGpu({.slot = 1, .throttled = true, .celsius = 91, .xids = {{31, 2}}});
  metrics.SetGpu({.slot = 1, .failing = "Xid 79", .xids = {{31, 3}, {79, 1}}});
  const std::string text = metrics.Text();
  for (const char* line : {"ringmaster_gpu_xids_total{", "slot=\"1\",xid=\"31\"} 3",
                           "slot=\"1\",xid=\"79\"} 1", "ringmaster_gpu_temperature_celsius{"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  EXPECT_NE(text.find("pod=\"digits-worker-0\",slot=\"1\"} 91"), std::string::npos) << text;
}

TEST(RebuildLog, OfManyNamesItKeepsThoseOfTheNewestChanges) {
  RebuildLog log;
  const std::vector<std::string> members(4000, "w"), joined(20, "w");
  for (uint64_t epoch = 1; epoch <= RebuildLog::kKeep; ++epoch) {
    log.Add({.epoch = epoch, .members = members, .left = {"w"}, .joined = joined});
  }
  size_t whole = 0;
  for (const job::Rebuild& rebuild : log.all()) {
    whole += rebuild.members.empty() ? 0 : 1;
    EXPECT_EQ(rebuild.left.size(), 1u);
  }
  EXPECT_EQ(whole, 2u);
  EXPECT_EQ(log.all().back().members, members);
  EXPECT_EQ(log.all().front().joined.size(), 10u);
  // However large the newest change is, it is told as a whole.
  log.Add({.epoch = 5000, .members = std::vector<std::string>(RebuildLog::kNames + 1, "w")});
  EXPECT_EQ(log.all().back().members.size(), RebuildLog::kNames + 1);
}

TEST(RebuildLog, KeepsTheLastThousand) {
  RebuildLog log;
  for (uint64_t epoch = 1; epoch <= RebuildLog::kKeep + 1; ++epoch) log.Add({.epoch = epoch});
  EXPECT_EQ(log.Find(1), nullptr);
  ASSERT_NE(log.Find(2), nullptr);
  log.Find(2)->seconds["connect"] = 0.5;
  EXPECT_EQ(log.Find(2)->seconds["connect"], 0.5) << "what is found can be added to";
}

}  // namespace
}  // namespace ringmaster::health
