// Clients of the embedded server that have no token, or not the manners of one that has.
#include "operator/local/server/rest_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "operator/kube/resources.h"
#include "operator/local/server/table.h"
#include "tests/support/temp_dir.h"
#include "tests/support/until.h"

namespace ringmaster::local {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr char kToken[] = "secret";
constexpr char kPath[] = "/api/v1/namespaces/default/configmaps";

class RestServerTest : public testing::Test {
 protected:
  void Start(const HttpsLimits& limits, FindLog logs = {}) {
    RestServerOptions options;
    options.logs = std::move(logs);
    options.tls = *MakeTlsMaterial();
    options.token = kToken;
    options.limits = limits;
    auto server = RestServer::Start(std::move(options), std::make_shared<Store>(StoreOptions{}));
    ASSERT_TRUE(server) << server.error();
    server_ = std::move(*server);
  }
  std::unique_ptr<httplib::SSLClient> Client(const std::string& token) const {
    auto client = std::make_unique<httplib::SSLClient>("127.0.0.1", server_->port());
    client->enable_server_certificate_verification(false);
    client->set_read_timeout(30);
    client->set_write_timeout(30);
    if (!token.empty()) client->set_bearer_token_auth(token);
    return client;
  }
  bool Answers() const {
    const auto answer = Client(kToken)->Get(kPath);
    return answer && answer->status == 200;
  }
  // How many bytes of a body without end the server takes; at most 64 MiB are sent.
  std::size_t Taken(const std::string& token, const httplib::Headers& headers = {}) const {
    std::size_t sent = 0;
    const std::string piece(65536, ' ');
    Client(token)->Post(
        kPath, headers,
        [&](std::size_t, httplib::DataSink& sink) {
          if (sent >= kMost) {
            sink.done();
            return true;
          }
          if (!sink.write(piece.data(), piece.size())) return false;
          sent += piece.size();
          return true;
        },
        "application/json");
    return sent;
  }
  int Connected() const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

  static constexpr std::size_t kMost = 64u << 20;
  std::unique_ptr<RestServer> server_;
};

TEST_F(RestServerTest, ABodyIsNotReadBeforeTheTokenIsKnown) {
  Start({});
  EXPECT_LT(Taken("", {}), kMost / 4);
  EXPECT_LT(Taken("wrong", {}), kMost / 4);
  EXPECT_TRUE(Answers());
}

TEST_F(RestServerTest, ABodyWithoutLengthIsBoundedTooForThoseWithAToken) {
  Start({});
  EXPECT_LT(Taken(kToken), kMost / 2);
  EXPECT_TRUE(Answers());
}

TEST_F(RestServerTest, WhoHasNoTokenHearsSo) {
  Start({});
  for (const char* token : {"", "wrong", "secretly"}) {
    const auto answer = Client(token)->Post(kPath, "{}", "application/json");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 401);
  }
}

TEST_F(RestServerTest, ACompressedBodyIsRefused) {
  Start({});
  const auto answer = Client(kToken)->Post(kPath, {{"Content-Encoding", "gzip"}}, "x", "a/b");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 415);
  EXPECT_THAT(answer->body, HasSubstr("Content-Encoding"));
}

TEST_F(RestServerTest, AWatchThatShallListFirstIsRefusedSoThatTheClientListsItself) {
  Start({});
  const auto answer =
      Client(kToken)->Get(std::string(kPath) + "?watch=true&sendInitialEvents=true" +
                          "&resourceVersionMatch=NotOlderThan&timeoutSeconds=1");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 422);
  EXPECT_THAT(answer->body, HasSubstr("sendInitialEvents: Forbidden"));
}

TEST_F(RestServerTest, AStrategicPatchOfAListIsRefusedAndOneOfMapsIsMerged) {
  Start({});
  const auto client = Client(kToken);
  ASSERT_TRUE(client->Post(kPath, R"({"metadata": {"name": "a"}})", "application/json"));
  const std::string object = std::string(kPath) + "/a";
  const char type[] = "application/strategic-merge-patch+json";
  const auto merged = client->Patch(object, R"({"data": {"k": "v"}})", type);
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->status, 200) << merged->body;
  EXPECT_THAT(merged->body, HasSubstr(R"("k":"v")"));
  for (const char* patch :
       {R"({"metadata": {"finalizers": ["a/b"]}})", R"({"data": {"$patch": "replace"}})"}) {
    const auto refused = client->Patch(object, patch, type);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, 415) << patch;
    EXPECT_THAT(refused->body, HasSubstr("--type=merge"));
  }
}

TEST_F(RestServerTest, ThePreviousLogIsThatOfTheProcessBeforeAndTheOtherParametersAreRefused) {
  const support::TempDir dir;
  std::ofstream(dir.path() / "log") << "first\nse\ncond\nthird\n";
  std::optional<uint64_t> previous = 6;
  Start({}, [&](const std::string&, const std::string&, const std::string&) {
    return LogFile{dir.path() / "log", 14, false, previous};
  });
  const auto client = Client(kToken);
  const std::string pods = "/api/v1/namespaces/default/pods";
  const auto made = client->Post(pods,
                                 R"({"metadata": {"name": "p"}, "spec": {"containers":
                                    [{"name": "main", "image": "any"}]}})",
                                 "application/json");
  ASSERT_TRUE(made);
  ASSERT_EQ(made->status, 201) << made->body;
  const auto get = [&](const std::string& query) {
    const auto answer = client->Get(pods + "/p/log?" + query);
    EXPECT_TRUE(answer);
    return answer ? std::to_string(answer->status) + " " + answer->body : "";
  };
  EXPECT_EQ(get(""), "200 third\n");
  EXPECT_EQ(get("previous=true"), "200 se\ncond\n");
  EXPECT_EQ(get("previous=true&tailLines=1"), "200 cond\n");
  EXPECT_EQ(get("timestamps=false"), "200 third\n");
  for (const char* query : {"timestamps=true", "sinceSeconds=5", "sinceTime=x", "limitBytes=1"}) {
    const std::string answer = get(query);
    EXPECT_TRUE(answer.starts_with("400 ")) << answer;
    EXPECT_THAT(answer, HasSubstr(query));
  }
  previous.reset();
  EXPECT_THAT(get("previous=true&container=main"), HasSubstr("has not been started before"));
}

TEST(TableTest, APodWithAStatusOfAnotherShapeIsARowAmongTheOthers) {
  const Json meta = {{"name", "p"}};
  const Json table = MakeTable(
      kube::Pods(),
      {{{"metadata", meta}, {"spec", 5}, {"status", {{"containerStatuses", {5, "x", nullptr}}}}},
       {{"metadata", meta}, {"status", {{"reason", 5}, {"conditions", {{{"reason", 5}}}}}}},
       {{"metadata", meta}, {"status", {{"containerStatuses", {{{"ready", "yes"}}}}}}},
       {{"metadata", meta}, {"status", {{"phase", "Running"}}}}},
      CrdSchema(), 0);
  ASSERT_EQ(table["rows"].size(), 4u);
  EXPECT_EQ(table["rows"][3]["cells"][2], "Running");
}

TEST_F(RestServerTest, AHeadWithoutEndIsCutOff) {
  Start({});
  const auto answer = Client("")->Get("/healthz", {{"X", std::string(kMost, 'x')}});
  EXPECT_FALSE(answer) << "all of it was read";
  EXPECT_TRUE(Answers());
}

TEST_F(RestServerTest, ConnectionsThatSayNothingKeepNobodyOut) {
  Start({.request_deadline = std::chrono::minutes(10), .strangers = 16});
  std::vector<int> silent;
  for (int i = 0; i < 60; ++i) silent.push_back(Connected());
  EXPECT_TRUE(Answers());
  for (const int fd : silent) close(fd);
}

TEST_F(RestServerTest, WhereConnectionsRunOutWatchesAreSentAwayAndShortRequestsAreServed) {
  Start({.connections = 4, .short_connections = 2});
  std::atomic<int> watching = 0;
  std::atomic<bool> over = false;
  std::vector<std::thread> watches;
  for (int i = 0; i < 2; ++i) {
    watches.emplace_back([&] {
      Client(kToken)->Get(
          std::string(kPath) + "?watch=true&allowWatchBookmarks=true", {},
          [&](const httplib::Response&) { return ++watching > 0; },
          [&](const char*, size_t) { return !over; });
    });
  }
  ASSERT_TRUE(support::Until([&] { return watching == 2; }));
  for (int i = 0; i < 10; ++i) {
    const auto third = Client(kToken)->Get(std::string(kPath) + "?watch=true");
    ASSERT_TRUE(third);
    EXPECT_EQ(third->status, 429);
    EXPECT_EQ(third->get_header_value("Retry-After"), "1");
    EXPECT_THAT(third->body, HasSubstr("has 2 connections"));
    // One client that would keep its connection.
    const auto client = Client(kToken);
    client->set_keep_alive(true);
    const auto answer = client->Get(kPath);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->get_header_value("Connection"), "close");
  }
  over = true;
  server_->Stop();
  for (std::thread& thread : watches) thread.join();
}

TEST_F(RestServerTest, WhoDripsBytesIsCutOffAtTheDeadlineOfTheWhole) {
  Start({.request_deadline = milliseconds(300)});
  const int fd = Connected();
  // The head of a record that is longer than what will ever come.
  const char head[] = {0x16, 0x03, 0x01, 0x20, 0x00};
  ASSERT_EQ(send(fd, head, sizeof head, MSG_NOSIGNAL), 5);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (send(fd, "x", 1, MSG_NOSIGNAL) == 1 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_LT(std::chrono::steady_clock::now(), end);
  close(fd);
}

}  // namespace
}  // namespace ringmaster::local
