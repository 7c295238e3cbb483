#include "sidecar/app/http_answers.h"

#include <gtest/gtest.h>

#include "common/ring_key/ring_key.h"

namespace ringmaster::app {
namespace {

const std::string kKey(ring_key::kBytes, 'k');

int StatusOf(const std::string& path, const std::string& ring_key, const std::string& token = "") {
  const HttpSubjects subjects = {.healthy = [] { return true; },
                                 .ready = [] { return false; },
                                 .metrics = [] { return "m"; },
                                 .status = [] { return "s"; },
                                 .history = [] { return "h"; }};
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
  for (const char* path : {"/status", "/history", "/", "/nothing", "/status/", "/metrics/"}) {
    EXPECT_EQ(StatusOf(path, kKey), 401) << path;
    EXPECT_EQ(StatusOf(path, kKey, kKey), 401) << path;
    EXPECT_NE(StatusOf(path, kKey, token), 401) << path;
  }
  EXPECT_EQ(StatusOf("/status", kKey, token), 200);
  EXPECT_EQ(StatusOf("/history", kKey, token), 200);
  EXPECT_EQ(StatusOf("/status", kKey, ring_key::MakeToken(std::string(32, 'l'))), 401)
      << "another job's";
}

TEST(HttpAnswersTest, AJobWithoutAKeyIsOpen) { EXPECT_EQ(StatusOf("/status", ""), 200); }

}  // namespace
}  // namespace ringmaster::app
