// Paged lists and watches: how they continue, and how they end.
#include <atomic>
#include <thread>

#include "operator/kube/testing/client_fixture.h"

namespace ringmaster::kube {
namespace {

using ::testing::ElementsAre;
using testing::Exchange;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Object;
using testing::ServerRequest;
using testing::StatusBody;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

class KubeWatchTest : public testing::ClientFixture {};

TEST_F(KubeWatchTest, AListWhoseContinueTokenHasExpiredIsReadAnewInOnePiece) {
  std::vector<std::string> targets;
  Serve([&](const ServerRequest& request, Exchange& exchange) {
    targets.push_back(request.target);
    if (request.number == 1) return exchange.Answer(200, ListPage({"a", "b"}, "next"));
    if (request.number == 2)
      return exchange.Answer(410, StatusBody(410, "Expired", "the token is too old").dump());
    exchange.Answer(200, ListPage({"a", "b", "c"}, ""));
  });
  ListOptions options;
  options.chunk = 2;
  auto list = Client().ListAll(ConfigMaps(), "ns", options);
  ASSERT_TRUE(list.has_value()) << list.error().message;
  EXPECT_EQ(list->items.size(), 3u);
  EXPECT_EQ(list->resource_version, "7");
  ASSERT_EQ(targets.size(), 3u);
  EXPECT_THAT(targets[0], HasSubstr("limit=2"));
  EXPECT_THAT(targets[1], HasSubstr("continue=next"));
  EXPECT_THAT(targets[2], Not(HasSubstr("continue")));
  EXPECT_THAT(targets[2], Not(HasSubstr("limit")));
}

TEST_F(KubeWatchTest, AListThatNeverGetsOnIsGivenUp) {
  Serve([](const ServerRequest&, Exchange& exchange) {
    exchange.Answer(200, ListPage({"a"}, "same"));
  });
  auto list = Client().ListAll(ConfigMaps(), "ns", {});
  ASSERT_FALSE(list.has_value());
  EXPECT_EQ(list.error().code, ErrorCode::kInternal);
  EXPECT_EQ(server_->requests(), 2);
}

TEST_F(KubeWatchTest, EventsMayComeInPiecesOrSeveralAtOnce) {
  Serve([](const ServerRequest& request, Exchange& exchange) {
    EXPECT_THAT(request.target, HasSubstr("allowWatchBookmarks=true"));
    exchange.Begin(200);
    std::string first = Event("ADDED", Object("a"));
    exchange.Chunk(first.substr(0, 10));
    exchange.Chunk(first.substr(10) + Event("MODIFIED", Object("a")) + "\n");
    exchange.Chunk(Event("NEWFANGLED", "{}") + Event("BOOKMARK", Object("")));
    exchange.Chunk(Event("DELETED", Object("a")));
    exchange.End();
  });
  std::vector<std::string> seen;
  auto ended = Watch(Client(), {}, &seen);
  EXPECT_TRUE(ended.has_value()) << ended.error().message;
  EXPECT_THAT(seen, ElementsAre("ADDED a", "MODIFIED a", "BOOKMARK ", "DELETED a"));
}

TEST_F(KubeWatchTest, WhatNobodyReadsIsLeftOut) {
  Serve([](const ServerRequest&, Exchange& exchange) {
    exchange.Begin(200);
    exchange.Chunk(
        Event("ADDED", R"({"metadata": {"name": "a"}, "data": {"read": 1, "long": 2}})"));
    exchange.End();
  });
  static constexpr UnreadField kFields[] = {{"data", "long"}};
  Json seen;
  auto ended = Client().Watch(ConfigMaps(), "ns", {.unread = kFields},
                              [&](WatchEvent event) {
                                seen = std::move(event.object);
                                return true;
                              },
                              {});
  EXPECT_TRUE(ended.has_value()) << ended.error().message;
  EXPECT_EQ(seen, Json::parse(R"({"metadata": {"name": "a"}, "data": {"read": 1}})"));
}

TEST_F(KubeWatchTest, AWatchWithoutAVersionAsksForNoBookmarks) {
  std::string target;
  Serve([&](const ServerRequest& request, Exchange& exchange) {
    target = request.target;
    exchange.Begin(200);
    exchange.End();
  });
  auto ended = Client().Watch(ConfigMaps(), "ns", {}, [](const WatchEvent&) { return true; }, {});
  EXPECT_TRUE(ended.has_value()) << ended.error().message;
  EXPECT_EQ(target,
            "/api/v1/namespaces/ns/configmaps?watch=true&timeoutSeconds=300&resourceVersion=0");
}

TEST_F(KubeWatchTest, AWatchThatFallsSilentEnds) {
  Serve([](const ServerRequest&, Exchange& exchange) {
    exchange.Begin(200);
    exchange.Chunk(Event("ADDED", Object("a")));
    exchange.WaitForClient(20'000);
  });
  WatchOptions options;
  options.quiet = 300ms;
  std::vector<std::string> seen;
  auto began = Clock::now();
  auto ended = Watch(Client(), options, &seen);
  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(ended.error().message, HasSubstr("sent nothing for 1 s"));
  EXPECT_THAT(seen, ElementsAre("ADDED a"));
  EXPECT_LT(Clock::now() - began, 4s);
}

TEST_F(KubeWatchTest, AWatchThatTheServerDoesntEndIsEndedSoonAfterItsTimeout) {
  Serve([](const ServerRequest&, Exchange& exchange) {
    exchange.Begin(200);
    while (!exchange.WaitForClient(50)) exchange.Chunk(Event("BOOKMARK", Object("")));
  });
  WatchOptions options;
  options.timeout = 1s;
  auto began = Clock::now();
  auto ended = Watch(Client(), options);
  EXPECT_FALSE(ended.has_value());
  EXPECT_GE(Clock::now() - began, 1s);
  EXPECT_LT(Clock::now() - began, 15s);
}

// Requests `stop` when the server has sent an event and is silent.
class StoppedWatch : public KubeWatchTest {
 protected:
  Result<void> Watch(const ClientConfig& config, std::stop_source& stop, std::stop_token token) {
    WatchOptions options;
    options.resource_version = "7";
    options.quiet = 60s;
    KubeApi& api = Client(config);
    std::thread stopper([&] {
      std::unique_lock lock(mu_);
      came_.wait_for(lock, 20s, [&] { return seen_; });
      stop.request_stop();
    });
    auto ended = api.Watch(
        ConfigMaps(), "ns", options,
        [&](const WatchEvent&) {
          std::lock_guard lock(mu_);
          seen_ = true;
          came_.notify_all();
          return true;
        },
        token);
    stopper.join();
    return ended;
  }
  void ServeOneEvent() {
    Serve([](const ServerRequest&, Exchange& exchange) {
      exchange.Begin(200);
      exchange.Chunk(Event("ADDED", Object("a")));
      exchange.WaitForClient(20'000);
    });
  }
  std::mutex mu_;
  std::condition_variable came_;
  bool seen_ = false;  // guarded by mu_
};

TEST_F(StoppedWatch, EndsAtOnceAndWell) {
  ServeOneEvent();
  std::stop_source stop;
  auto began = Clock::now();
  auto ended = Watch(Config(), stop, stop.get_token());
  EXPECT_TRUE(ended.has_value()) << ended.error().message;
  EXPECT_LT(Clock::now() - began, 10s);
}

TEST_F(StoppedWatch, EndsWithItsClientToo) {
  ServeOneEvent();
  std::stop_source stop;
  ClientConfig config = Config();
  config.stop = stop.get_token();
  auto began = Clock::now();
  auto ended = Watch(config, stop, {});
  EXPECT_THAT(ended.error().message, HasSubstr("is stopping"));
  EXPECT_LT(Clock::now() - began, 10s);
}

TEST_F(KubeWatchTest, AWatchFromAVersionThatIsTooOldIsGoneWhicheverWayTheServerSaysIt) {
  bool as_event = false;
  Serve([&](const ServerRequest&, Exchange& exchange) {
    std::string gone = StatusBody(410, "Expired", "too old resource version: 1 (7)").dump();
    if (!as_event) return exchange.Answer(410, gone);
    exchange.Begin(200);
    exchange.Chunk(Event("ERROR", gone));
    exchange.End();
  });
  KubeApi& api = Client();
  for (bool way : {false, true}) {
    as_event = way;
    auto ended = Watch(api, {});
    ASSERT_FALSE(ended.has_value());
    EXPECT_EQ(ended.error().code, ErrorCode::kGone);
    EXPECT_THAT(ended.error().message, HasSubstr("too old resource version"));
  }
}

TEST_F(KubeWatchTest, AWatchLineThatIsNoEventIsAnInternalError) {
  for (const char* line : {"{}\n", "nonsense\n",
                           R"({"type":"ADDED","object":3})"
                           "\n"}) {
    Serve([=](const ServerRequest&, Exchange& exchange) {
      exchange.Begin(200);
      exchange.Chunk(line);
      exchange.End();
    });
    auto ended = Watch(Client(), {});
    ASSERT_FALSE(ended.has_value()) << line;
    EXPECT_EQ(ended.error().code, ErrorCode::kInternal) << line;
  }
}

TEST_F(KubeWatchTest, AWatchThatIsCutOffIsUnavailable) {
  Serve([](const ServerRequest&, Exchange& exchange) {
    exchange.Begin(200);
    exchange.Chunk(Event("ADDED", Object("a")));
  });
  auto ended = Watch(Client(), {});
  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace ringmaster::kube
