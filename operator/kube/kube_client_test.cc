// How the client handles a server's answers: retries, deadlines, kept connections.
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

class KubeClientTest : public testing::ClientFixture {};

TEST_F(KubeClientTest, A429IsWaitedForAsLongAsTheServerSays) {
  Serve([](const ServerRequest& request, Exchange& exchange) {
    if (request.number == 1)
      return exchange.Answer(429, StatusBody(429, "TooManyRequests", "slow down").dump(),
                             {"Retry-After: 1"});
    exchange.Answer(201, Object("a"));
  });
  auto began = Clock::now();
  auto created = Client().Create(ConfigMaps(), "ns", Json::parse(Object("a")));
  ASSERT_TRUE(created.has_value()) << created.error().message;
  EXPECT_GE(Clock::now() - began, 1s);
  EXPECT_EQ(server_->requests(), 2);
}

TEST_F(KubeClientTest, A429ThatOutlastsTheDeadlineIsReportedAtOnceWithItsWait) {
  Serve([](const ServerRequest&, Exchange& exchange) {
    exchange.Answer(429, StatusBody(429, "TooManyRequests", "slow down").dump(),
                    {"Retry-After: 3600"});
  });
  auto got = Client().Get(ConfigMaps(), "ns", "a");
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, ErrorCode::kTooManyRequests);
  EXPECT_EQ(got.error().retry_after, 3600s);
  EXPECT_EQ(server_->requests(), 1);
}

TEST_F(KubeClientTest, RetryAfterMayBeADate) {
  Serve([](const ServerRequest&, Exchange& exchange) {
    std::time_t then = std::time(nullptr) + 3600;
    char text[64];
    std::strftime(text, sizeof text, "Retry-After: %a, %d %b %Y %H:%M:%S GMT", std::gmtime(&then));
    exchange.Answer(503, StatusBody(503, "ServiceUnavailable", "later").dump(), {text});
  });
  auto got = Client().Get(ConfigMaps(), "ns", "a");
  ASSERT_FALSE(got.has_value());
  EXPECT_GT(got.error().retry_after, 3500s);
  EXPECT_LE(got.error().retry_after, 3600s);
}

TEST_F(KubeClientTest, RetryAfterIsADayAtMost) {
  Serve([](const ServerRequest&, Exchange& exchange) {
    exchange.Answer(503, StatusBody(503, "ServiceUnavailable", "later").dump(),
                    {"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"});
  });
  auto got = Client().Get(ConfigMaps(), "ns", "a");
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().retry_after, 24h);
}

TEST_F(KubeClientTest, ReadsAreRepeatedAfterA5xxAndWritesAreNot) {
  Serve([](const ServerRequest& request, Exchange& exchange) {
    if (request.number < 3 || request.method != "GET")
      return exchange.Answer(500, StatusBody(500, "InternalError", "etcd is away").dump());
    exchange.Answer(200, Object("a"));
  });
  KubeApi& api = Client();
  auto got = api.Get(ConfigMaps(), "ns", "a");
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(server_->requests(), 3);
  auto created = api.Create(ConfigMaps(), "ns", Json::parse(Object("a")));
  ASSERT_FALSE(created.has_value());
  EXPECT_EQ(created.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(created.error().message, HasSubstr("etcd is away"));
  EXPECT_EQ(server_->requests(), 4);
}

TEST_F(KubeClientTest, AReadIsGivenUpAfterThreeTries) {
  Serve([](const ServerRequest&, Exchange& exchange) { exchange.Answer(500, "gone fishing"); });
  auto got = Client().Get(ConfigMaps(), "ns", "a");
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(got.error().message,
              HasSubstr("get configmaps \"a\" in namespace \"ns\": HTTP status 500: gone fishing"));
  EXPECT_EQ(server_->requests(), 3);
}

TEST_F(KubeClientTest, AWriteThatTheServerAsksToRepeatIsRepeated) {
  Serve([](const ServerRequest& request, Exchange& exchange) {
    if (request.number == 1)
      return exchange.Answer(503, StatusBody(503, "ServiceUnavailable", "starting").dump(),
                             {"Retry-After: 0"});
    exchange.Answer(201, Object("a"));
  });
  auto began = Clock::now();
  auto created = Client().Create(ConfigMaps(), "ns", Json::parse(Object("a")));
  EXPECT_TRUE(created.has_value()) << created.error().message;
  EXPECT_GE(Clock::now() - began, 100ms) << "at once is not meant";
}

TEST_F(KubeClientTest, TheWaitMayStandInTheAnswerAlone) {
  Serve([](const ServerRequest& request, Exchange& exchange) {
    Json status = StatusBody(429, "TooManyRequests", "slow down");
    if (request.number == 1) status["details"]["retryAfterSeconds"] = 2;
    if (request.number == 1) return exchange.Answer(429, status.dump());
    if (request.number == 2) return exchange.Answer(429, status.dump(), {"Retry-After: 0"});
    exchange.Answer(200, Object("a"));
  });
  auto began = Clock::now();
  auto got = Client().Get(ConfigMaps(), "ns", "a");
  EXPECT_TRUE(got.has_value()) << got.error().message;
  EXPECT_GE(Clock::now() - began, 2100ms);
}

TEST_F(KubeClientTest, AReadWhoseAnswerIsLostIsTriedThreeTimesAtAPace) {
  Serve([](const ServerRequest&, Exchange&) {});
  auto began = Clock::now();
  EXPECT_EQ(Client().Get(ConfigMaps(), "ns", "a").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(server_->requests(), 3);
  EXPECT_GE(Clock::now() - began, 300ms);
}

TEST_F(KubeClientTest, AWriteOnAKeptConnectionIsNotSentTwiceEither) {
  Serve([](const ServerRequest& request, Exchange& exchange) {
    if (request.method == "GET") exchange.Answer(200, Object("a"));
  });
  KubeApi& api = Client();
  ASSERT_TRUE(api.Get(ConfigMaps(), "ns", "a").has_value());
  EXPECT_FALSE(api.Create(ConfigMaps(), "ns", Json::parse(Object("a"))).has_value());
  EXPECT_EQ(server_->requests(), 2);
}

TEST_F(KubeClientTest, AWriteWhoseAnswerIsLostIsNotSentTwice) {
  Serve([](const ServerRequest&, Exchange&) {});  // reads the request and closes the connection
  auto created = Client().Create(ConfigMaps(), "ns", Json::parse(Object("a")));
  ASSERT_FALSE(created.has_value());
  EXPECT_EQ(created.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(created.error().message, HasSubstr("closed the connection"));
  EXPECT_EQ(server_->requests(), 1);
}

TEST_F(KubeClientTest, OneConnectionServesManyCalls) {
  Serve([](const ServerRequest&, Exchange& exchange) { exchange.Answer(200, Object("a")); });
  KubeApi& api = Client();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(api.Get(ConfigMaps(), "ns", "a").has_value());
  EXPECT_EQ(server_->connections(), 1);
}

TEST_F(KubeClientTest, AWriteAfterTheServerHasClosedItsIdleConnectionsGoesThrough) {
  Serve([](const ServerRequest&, Exchange& exchange) { exchange.Answer(200, Object("a")); });
  KubeApi& api = Client();
  ASSERT_TRUE(api.Get(ConfigMaps(), "ns", "a").has_value());
  server_->CloseConnections();
  auto created = api.Create(ConfigMaps(), "ns", Json::parse(Object("a")));
  EXPECT_TRUE(created.has_value()) << created.error().message;
  EXPECT_EQ(server_->connections(), 2);
}

TEST_F(KubeClientTest, ASilentServerIsLeftAtTheDeadline) {
  Serve([](const ServerRequest&, Exchange& exchange) { exchange.WaitForClient(20'000); });
  ClientConfig config = Config();
  config.deadline = 300ms;
  auto began = Clock::now();
  auto got = Client(config).Get(ConfigMaps(), "ns", "a");
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(got.error().message, HasSubstr("gave no complete answer within 1 s"));
  EXPECT_LT(Clock::now() - began, 5s);
}

TEST_F(KubeClientTest, AnAnswerThatDripsIsLeftAtTheDeadline) {
  for (bool in_headers : {true, false}) {
    Serve([=](const ServerRequest&, Exchange& exchange) {
      if (in_headers) {
        exchange.Raw("HTTP/1.1 200 OK\r\nX-Slow: ");
      } else {
        exchange.Begin(200);
      }
      while (!exchange.WaitForClient(20)) {
        if (in_headers) {
          exchange.Raw("x");
        } else {
          exchange.Chunk(" ");
        }
      }
    });
    ClientConfig config = Config();
    config.deadline = 500ms;
    auto began = Clock::now();
    auto got = Client(config).Get(ConfigMaps(), "ns", "a");
    ASSERT_FALSE(got.has_value());
    EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
    EXPECT_LT(Clock::now() - began, 5s) << (in_headers ? "headers" : "body");
  }
}

TEST_F(KubeClientTest, AStoppedClientEndsItsCallsAtOnce) {
  std::atomic<bool> asked = false;
  Serve([&](const ServerRequest&, Exchange& exchange) {
    asked = true;
    exchange.WaitForClient(20'000);
  });
  std::stop_source stop;
  ClientConfig config = Config();
  config.stop = stop.get_token();
  KubeApi& api = Client(config);
  std::thread stopper([&] {
    while (!asked) std::this_thread::yield();
    stop.request_stop();
  });
  auto began = Clock::now();
  auto got = api.Get(ConfigMaps(), "ns", "a");
  stopper.join();
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(got.error().message, HasSubstr("this client is stopping"));
  EXPECT_LT(Clock::now() - began, 10s);
  EXPECT_THAT(api.Get(ConfigMaps(), "ns", "a").error().message, HasSubstr("is stopping"));
}

TEST_F(KubeClientTest, AnswersThatAreNotTheApisAreInternalErrors) {
  std::string body;
  Serve([&](const ServerRequest&, Exchange& exchange) { exchange.Answer(200, body); });
  KubeApi& api = Client();
  for (const char* text : {"<html>", "[]", "null", ""}) {
    body = text;
    auto got = api.Get(ConfigMaps(), "ns", "a");
    ASSERT_FALSE(got.has_value()) << text;
    EXPECT_EQ(got.error().code, ErrorCode::kInternal) << text;
  }
  for (const char* text : {R"({"items": 3, "metadata": {}})", R"({"kind": "ConfigMap"})"}) {
    body = text;
    auto list = api.ListAll(ConfigMaps(), "ns", {});
    ASSERT_FALSE(list.has_value()) << text;
    EXPECT_EQ(list.error().code, ErrorCode::kInternal) << text;
  }
}

TEST_F(KubeClientTest, AStatusWithFieldsOfWrongTypesIsStillAnError) {
  Serve([](const ServerRequest&, Exchange& exchange) {
    exchange.Answer(409, R"({"reason": 1, "message": [], "details": {"retryAfterSeconds": "x"}})");
  });
  auto got = Client().Get(ConfigMaps(), "ns", "a");
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, ErrorCode::kConflict);
}

TEST_F(KubeClientTest, ObjectsThatAreNotUtf8AreRefusedBeforeSending) {
  Serve([](const ServerRequest&, Exchange& exchange) { exchange.Answer(200, Object("a")); });
  auto created = Client().Create(ConfigMaps(), "ns", {{"metadata", {{"name", "a\xff"}}}});
  ASSERT_FALSE(created.has_value());
  EXPECT_EQ(created.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(server_->requests(), 0);
}

TEST_F(KubeClientTest, WritesCarryWhatTheirKindNeeds) {
  std::vector<std::pair<std::string, Json>> sent;
  std::vector<std::string> types;
  Serve([&](const ServerRequest& request, Exchange& exchange) {
    sent.emplace_back(request.method + " " + request.target, Json::parse(request.body));
    types.push_back(request.headers.at("content-type"));
    exchange.Answer(200, Object("a"));
  });
  KubeApi& api = Client();
  PatchOptions patch;
  patch.field_manager = "me";
  ASSERT_TRUE(api.Patch(HorovodJobs(), "ns", "a", {{"x", nullptr}}, patch).has_value());
  patch.type = PatchType::kApply;
  patch.force = true;
  patch.subresource = "status";
  ASSERT_TRUE(api.Patch(HorovodJobs(), "ns", "a", {{"x", 1}}, patch).has_value());
  DeleteOptions gone;
  gone.uid = "u";
  gone.resource_version = "5";
  gone.propagation = "Foreground";
  gone.grace_period_seconds = 0;
  ASSERT_TRUE(api.Delete(Pods(), "ns", "p", gone).has_value());
  ASSERT_EQ(sent.size(), 3u);
  const std::string job = "/apis/ringmaster.dev/v1alpha1/namespaces/ns/horovodjobs/a";
  EXPECT_EQ(sent[0].first, "PATCH " + job + "?fieldManager=me&fieldValidation=Warn");
  EXPECT_EQ(sent[0].second, Json({{"x", nullptr}}));
  EXPECT_EQ(sent[1].first,
            "PATCH " + job + "/status?fieldManager=me&force=true&fieldValidation=Warn");
  EXPECT_EQ(sent[1].second["kind"], "HorovodJob");
  EXPECT_THAT(types, ElementsAre("application/merge-patch+json", "application/apply-patch+yaml",
                                 "application/json"));
  EXPECT_EQ(sent[2].second["preconditions"], Json({{"uid", "u"}, {"resourceVersion", "5"}}));
  EXPECT_EQ(sent[2].second["propagationPolicy"], "Foreground");
  EXPECT_EQ(sent[2].second["gracePeriodSeconds"], 0);
}

TEST_F(KubeClientTest, NothingIsAskedForWithoutAName) {
  // DELETE of a path without a name would delete all objects.
  Serve([](const ServerRequest&, Exchange& exchange) { exchange.Answer(200, Object("a")); });
  KubeApi& api = Client();
  EXPECT_EQ(api.Delete(Pods(), "ns", "", {}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(api.Get(Pods(), "ns", "").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(api.Patch(Pods(), "ns", "", Json::object(), {}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(api.Update(Pods(), "ns", Json::object(), "").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(server_->requests(), 0);
}

TEST_F(KubeClientTest, ForceIsForApplyAndOnlyWhereItIsAskedFor) {
  std::vector<std::string> targets;
  Serve([&](const ServerRequest& request, Exchange& exchange) {
    targets.push_back(request.target);
    exchange.Answer(200, Object("a"));
  });
  KubeApi& api = Client();
  PatchOptions merge;
  merge.force = true;
  ASSERT_TRUE(api.Patch(Pods(), "ns", "a", Json::object(), merge).has_value());
  PatchOptions apply;
  apply.type = PatchType::kApply;
  ASSERT_TRUE(api.Patch(Pods(), "ns", "a", Json::object(), apply).has_value());
  for (const std::string& target : targets) EXPECT_THAT(target, Not(HasSubstr("force")));
}

TEST_F(KubeClientTest, ItemsOfAListHaveTheirKindAndNullIsAnEmptyList) {
  std::string body = ListPage({"a"}, "");
  Serve([&](const ServerRequest&, Exchange& exchange) { exchange.Answer(200, body); });
  KubeApi& api = Client();
  auto list = api.ListAll(ConfigMaps(), "ns", {});
  ASSERT_TRUE(list.has_value()) << list.error().message;
  EXPECT_EQ(list->items.at(0)["kind"], "ConfigMap");
  body = R"({"items": null, "metadata": {"resourceVersion": "7"}})";
  list = api.ListAll(ConfigMaps(), "ns", {});
  ASSERT_TRUE(list.has_value()) << list.error().message;
  EXPECT_TRUE(list->items.empty());
}

TEST_F(KubeClientTest, WhatIsThereAlreadyIsNoConflict) {
  std::string reason;
  Serve([&](const ServerRequest&, Exchange& exchange) {
    exchange.Answer(409, StatusBody(409, reason, "no").dump());
  });
  KubeApi& api = Client();
  for (const auto& [said, code] : {std::pair("AlreadyExists", ErrorCode::kAlreadyExists),
                                   std::pair("Conflict", ErrorCode::kConflict)}) {
    reason = said;
    EXPECT_EQ(api.Create(ConfigMaps(), "ns", Json::parse(Object("a"))).error().code, code);
  }
}

TEST_F(KubeClientTest, StrictnessAndDryRunCanBeAskedForOneCreate) {
  std::string target;
  Serve([&](const ServerRequest& request, Exchange& exchange) {
    target = request.target;
    exchange.Answer(201, Object("a"));
  });
  CreateOptions options;
  options.field_validation = "Strict";
  options.dry_run = true;
  ASSERT_TRUE(Client().CreateWith(Pods(), "ns", Json::parse(Object("a")), options).has_value());
  EXPECT_EQ(target, "/api/v1/namespaces/ns/pods?fieldValidation=Strict&dryRun=All");
}

TEST_F(KubeClientTest, WarningsOfTheServerAreHandedOn) {
  Serve([](const ServerRequest&, Exchange& exchange) {
    exchange.Answer(201, Object("a"),
                    {"Warning: 299 - \"unknown field \\\"spec.foo\\\"\"",
                     "Warning: 299 kube-apiserver \"second\""});
  });
  std::vector<std::string> warnings;
  ClientConfig config = Config();
  config.on_warning = [&](const std::string& asked, const std::string& text) {
    EXPECT_THAT(asked, HasSubstr("create configmaps \"a\""));
    warnings.push_back(text);
  };
  ASSERT_TRUE(Client(config).Create(ConfigMaps(), "ns", Json::parse(Object("a"))).has_value());
  EXPECT_THAT(warnings, ElementsAre("unknown field \"spec.foo\"", "second"));
}

TEST_F(KubeClientTest, TheObserverHearsOfEveryExchange) {
  Serve([](const ServerRequest& request, Exchange& exchange) {
    if (request.target.find("watch=true") != std::string::npos) {
      exchange.Begin(200);
      return exchange.End();
    }
    if (request.number == 1)
      return exchange.Answer(429, StatusBody(429, "TooManyRequests", "x").dump(),
                             {"Retry-After: 0"});
    if (request.method == "PATCH")
      return exchange.Answer(409, StatusBody(409, "Conflict", "x").dump());
    if (request.method == "POST") return;
    exchange.Answer(200, Object("a"));
  });
  std::vector<std::string> calls;
  ClientConfig config = Config();
  config.on_call = [&](const CallReport& report) {
    calls.push_back(std::string(report.verb) + " " + report.resource.plural + "/" +
                    std::string(report.subresource) + " " + std::to_string(report.code));
    EXPECT_GT(report.seconds.count(), 0);
    EXPECT_LT(report.seconds.count(), 20);
  };
  KubeApi& api = Client(config);
  (void)api.Get(ConfigMaps(), "ns", "a");
  PatchOptions status;
  status.subresource = "status";
  (void)api.Patch(HorovodJobs(), "ns", "a", Json::object(), status);
  (void)api.Create(Pods(), "ns", Json::parse(Object("p")));
  (void)Watch(api, {});
  EXPECT_THAT(calls, ElementsAre("get configmaps/ 429", "get configmaps/ 200",
                                 "patch horovodjobs/status 409", "create pods/ 0",
                                 "watch configmaps/ 200"));
}

TEST_F(KubeClientTest, TheClientsOwnLimitIsKeptAndToldToTheObserver) {
  Serve([](const ServerRequest&, Exchange& exchange) { exchange.Answer(200, Object("a")); });
  ClientConfig config = Config();
  config.qps = 20;
  config.burst = 1;
  double throttled = 0;
  config.on_call = [&](const CallReport& report) { throttled += report.throttled.count(); };
  KubeApi& api = Client(config);
  auto began = Clock::now();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(api.Get(ConfigMaps(), "ns", "a").has_value());
  EXPECT_GE(Clock::now() - began, 90ms);
  EXPECT_GT(throttled, 0.02);
}

TEST_F(KubeClientTest, ACallThatItsOwnLimitLeavesNoTimeForIsRefusedAtOnce) {
  Serve([](const ServerRequest&, Exchange& exchange) { exchange.Answer(200, Object("a")); });
  ClientConfig config = Config();
  config.qps = 0.02;
  config.burst = 1;
  KubeApi& api = Client(config);
  ASSERT_TRUE(api.Get(ConfigMaps(), "ns", "a").has_value());
  EXPECT_THAT(api.Get(ConfigMaps(), "ns", "a").error().message,
              HasSubstr("the client's own limit of 0.02 calls a second leaves no time"));
}

TEST_F(KubeClientTest, APodIsReachedThroughTheServerWithAHeaderOfItsOwn) {
  Serve([](const ServerRequest& request, Exchange& exchange) {
    EXPECT_EQ(request.target, "/api/v1/namespaces/ns/pods/p%3A9403/proxy/status");
    EXPECT_EQ(request.headers.at("ringmaster-token"), "secret");
    exchange.Answer(200, "not JSON");
  });
  const auto body = Client(Config()).PodProxy(
      "ns", "p", {.port = 9403, .path = "/status", .headers = {{"Ringmaster-Token", "secret"}}});
  ASSERT_TRUE(body.has_value()) << body.error().message;
  EXPECT_EQ(*body, "not JSON");
}

TEST_F(KubeClientTest, APodsOwnRefusalIsNotTheServersAndTheTokenIsNotAskedForAgain) {
  int asked = 0;
  Serve([&](const ServerRequest&, Exchange& exchange) {
    ++asked;
    exchange.Answer(401, "a token is wanted");
  });
  ClientConfig config = Config();
  config.token_file = Write("token", "one");
  const auto body = Client(config).PodProxy("ns", "p", {.port = 9403, .path = "/status"});
  ASSERT_FALSE(body.has_value());
  EXPECT_EQ(body.error().reason, "");
  EXPECT_EQ(asked, 1);
}

TEST_F(KubeClientTest, ThePartOfALogThatIsWantedIsAskedFor) {
  Serve([](const ServerRequest& request, Exchange& exchange) {
    EXPECT_THAT(request.target, HasSubstr("tailLines=20"));
    EXPECT_THAT(request.target, ::testing::Not(HasSubstr("follow")));
    exchange.Answer(200, "last\n");
  });
  std::string text;
  auto read = Client(Config()).PodLogWith("ns", "p", {.container = "c", .tail = 20},
                                          [&](std::string_view part) {
                                            text += part;
                                            return true;
                                          },
                                          {});
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(text, "last\n");
}

TEST_F(KubeClientTest, NobodyThereIsUnavailableAndNamesTheServer) {
  Serve([](const ServerRequest&, Exchange&) {});
  ClientConfig config = Config();
  server_->Stop();
  auto got = Client(config).Get(ConfigMaps(), "ns", "a");
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(got.error().message,
              HasSubstr("can't connect to https://127.0.0.1:" + std::to_string(config.port)));
}

}  // namespace
}  // namespace ringmaster::kube
