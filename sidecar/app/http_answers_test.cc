#include "sidecar/app/http_answers.h"

#include <gtest/gtest.h>

#include "common/ring_key/ring_key.h"

namespace ringmaster::app {
namespace {

using health::HttpResponse;

const std::string kKey(ring_key::kBytes, 'k');

int StatusOf(const std::string& path, const std::string& ring_key, const std::string& token = "") {
  const HttpSubjects subjects = {.healthy = [] { return true; },
                                 .ready = [] { return false; },
                                 .metrics = [] { return "m"; },
                                 .history = [] { return "h"; },
                                 .status = [](std::size_t) { return "s"; },
                                 .timeline = [](const TimelineAsk&) { return [] { return "t"; }; }};
  return Answer({path, {{"ringmaster-token", token}}}, subjects, ring_key).status;
}

TEST(HttpAnswersTest, ProbesAndMetricsAreOpen) {
  for (const std::string& key : {kKey, std::string()}) {
    EXPECT_EQ(StatusOf("/healthz", key), 200);
    EXPECT_EQ(StatusOf("/readyz", key), 503) << "not ready";
    EXPECT_EQ(StatusOf("/metrics", key), 200);
  }
}

TEST(HttpAnswersTest, AllElseWantsTheTokenOfTheJob) {
  const std::string token = ring_key::MakeToken(kKey);
  for (const char* path :
       {"/status", "/history", "/timeline", "/", "/nothing", "/status/", "/metrics/"}) {
    EXPECT_EQ(StatusOf(path, kKey), 401) << path;
    EXPECT_EQ(StatusOf(path, kKey, kKey), 401) << path;
    EXPECT_NE(StatusOf(path, kKey, token), 401) << path;
  }
  EXPECT_EQ(StatusOf("/status", kKey, token), 200);
  EXPECT_EQ(StatusOf("/history", kKey, token), 200);
  EXPECT_EQ(StatusOf("/timeline", kKey, token), 200);
  EXPECT_EQ(StatusOf("/status", kKey, ring_key::MakeToken(std::string(32, 'l'))), 401)
      << "another job's";
}

TEST(HttpAnswersTest, TheStatusHasAsManyChangesAsAreAskedFor) {
  HttpSubjects subjects;
  subjects.status = [](std::size_t rebuilds) { return std::to_string(rebuilds); };
  const auto ask = [&](std::map<std::string, std::string> query) {
    return Answer({.path = "/status", .query = std::move(query)}, subjects, "");
  };
  EXPECT_EQ(ask({}).body, "1000") << "all that are kept";
  EXPECT_EQ(ask({{"rebuilds", "7"}}).body, "7");
  EXPECT_EQ(ask({{"rebuilds", "-1"}}).status, 400);
  EXPECT_EQ(ask({{"rebuilds", "1001"}}).body, "rebuilds is '1001', 0 to 1000 are allowed\n");
}

// What would be asked of the workers nobody would wait for.
TEST(HttpAnswersTest, OfTheTimelineThereIsNoHeadAlone) {
  int asked = 0;
  HttpSubjects subjects;
  subjects.timeline = [&](const TimelineAsk&) {
    ++asked;
    return [] { return std::optional<std::string>("t"); };
  };
  EXPECT_EQ(Answer({.path = "/timeline", .head = true}, subjects, "").status, 405);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(Answer({.path = "/timeline"}, subjects, "").status, 200);
  EXPECT_EQ(asked, 1);
}

HttpResponse TimelineOf(const std::map<std::string, std::string>& query, TimelineAsk* asked,
                        bool too_many = false) {
  HttpSubjects subjects;
  subjects.timeline = [=](const TimelineAsk& ask) -> std::function<std::optional<std::string>()> {
    *asked = ask;
    if (too_many) return nullptr;
    return [calls = 0]() mutable { return ++calls < 3 ? std::nullopt : std::optional("document"); };
  };
  return Answer({"/timeline", {}, query}, subjects, "");
}

TEST(HttpAnswersTest, TheTimelineIsAnsweredWhenTheWorkersHaveToldIt) {
  TimelineAsk asked;
  const HttpResponse response =
      TimelineOf({{"seconds", "5"}, {"tensors", "0"}, {"bytes", "5000"}}, &asked);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(asked.seconds, 5);
  EXPECT_FALSE(asked.tensors);
  EXPECT_EQ(asked.bytes, 5000);
  EXPECT_EQ(response.next(), "") << "not yet";
  EXPECT_EQ(response.next(), "");
  EXPECT_EQ(response.next(), "document");
  EXPECT_EQ(response.next(), std::nullopt) << "that was all";
}

TEST(HttpAnswersTest, ABadRequestForTheTimelineSaysWhatIsAllowed) {
  TimelineAsk asked;
  for (const char* seconds : {"0", "61", "-1", "x", "5s", "99999999999999999999"}) {
    const HttpResponse response = TimelineOf({{"seconds", seconds}}, &asked);
    EXPECT_EQ(response.status, 400);
    EXPECT_EQ(response.body, std::string("seconds is '") + seconds + "', 1 to 60 are allowed\n");
  }
  EXPECT_EQ(TimelineOf({{"tensors", "no"}}, &asked).body, "tensors is 'no', 0 to 1 are allowed\n");
  EXPECT_EQ(TimelineOf({{"bytes", "10"}}, &asked).body,
            "bytes is '10', 1024 to 8388608 are allowed\n");
  EXPECT_EQ(TimelineOf({}, &asked, /*too_many=*/true).status, 503);
  EXPECT_EQ(asked.seconds, 10);
  EXPECT_TRUE(asked.tensors);
}

TEST(HttpAnswersTest, AJobWithoutAKeyIsOpen) { EXPECT_EQ(StatusOf("/status", ""), 200); }

}  // namespace
}  // namespace ringmaster::app
