#include "operator/app/api_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "operator/runtime/testing/scripted_api.h"

namespace ringmaster::app {
namespace {

using kube::ErrorCode;
using runtime::ScriptedApi;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ApiServerErrors, SayWhatIsWrongAndWhatToDo) {
  const struct {
    kube::Error error;
    std::string ns, says;
    bool unreachable;
  } cases[] = {
      {{ErrorCode::kNotFound, 404, "NotFound", "no such resource"},
       "",
       "install the CustomResourceDefinition",
       false},
      {{ErrorCode::kForbidden, 403, "Forbidden", "User \"x\" cannot list"},
       "",
       "list horovodjobs.ringmaster.dev in all namespaces, which the chart's ClusterRole gives",
       false},
      {{ErrorCode::kForbidden, 403, "Forbidden", "cannot list"},
       "team",
       "in namespace team, which the chart's Role gives: cannot list",
       false},
      {{ErrorCode::kForbidden, 401, "Unauthorized", "Unauthorized"}, "", "expired", false},
      {{ErrorCode::kForbidden, 0, "", "list horovodjobs: credential plugin p failed"},
       "",
       "no credentials: list horovodjobs: credential plugin p failed",
       false},
      {{ErrorCode::kUnavailable, 0, "", "connection refused"}, "", "connection refused", true},
      {{ErrorCode::kTooManyRequests, 429, "", "slow down"}, "", "slow down", true},
      {{ErrorCode::kInternal, 200, "", "not a list"}, "", "not a list", false},
  };
  for (const auto& c : cases) {
    const ApiProblem problem = ExplainApiError(c.error, c.ns);
    EXPECT_THAT(problem.what, HasSubstr(c.says));
    EXPECT_EQ(problem.unreachable, c.unreachable) << c.says;
  }
}

// Records the calls.
class NotingApi : public ScriptedApi {
 public:
  kube::Result<kube::List> ListAll(const kube::Resource& resource, const std::string& ns,
                                   const kube::ListOptions& options) override {
    asked = {resource.plural, ns, options.field_selector};
    return ScriptedApi::ListAll(resource, ns, options);
  }
  std::vector<std::string> asked;
};

class WaitForApiServerTest : public testing::Test {
 protected:
  kube::Result<void> Wait(milliseconds timeout) {
    options_.timeout = timeout;
    return WaitForApiServer(&api_, options_, stop_.get_token());
  }
  NotingApi api_;
  std::stop_source stop_;
  std::vector<std::string> problems_;
  ApiWaitOptions options_{
      .namespaces = {"team"},
      .first_pause = milliseconds(1),
      .last_pause = milliseconds(4),
      .on_problem = [this](const std::string& what) { problems_.push_back(what); }};
};

TEST_F(WaitForApiServerTest, WhatIsThereIsNotWaitedFor) {
  api_.SetList(1, {});
  EXPECT_TRUE(Wait(milliseconds(0)));
  EXPECT_EQ(api_.lists(), 1);
  EXPECT_THAT(api_.asked, ElementsAre("horovodjobs", "team", "metadata.name=ringmaster-probe"));
}

TEST_F(WaitForApiServerTest, NobodyHasToBeTold) {
  options_.on_problem = nullptr;
  api_.FailLists({.code = ErrorCode::kUnavailable, .message = "connection refused"});
  EXPECT_FALSE(Wait(milliseconds(0)));
  api_.FailLists({.code = ErrorCode::kNotFound, .message = "no such resource"});
  std::jthread admin([this] {
    EXPECT_TRUE(api_.AwaitLists(3));
    api_.SetList(1, {});
  });
  EXPECT_TRUE(Wait(milliseconds(0)));
}

TEST_F(WaitForApiServerTest, AnApiServerThatIsAwayForTooLongEndsTheWait) {
  api_.FailLists({.code = ErrorCode::kUnavailable, .message = "connection refused"});
  const auto waited = Wait(milliseconds(50));
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(waited.error().message,
            "the API server can't be reached: connection refused (for 0 s: "
            "--api-server-timeout-seconds)");
  EXPECT_GT(api_.lists(), 2);
  EXPECT_LT(api_.lists(), 30) << "it turns round hot";
}

TEST_F(WaitForApiServerTest, WhatSomebodyHasToInstallIsWaitedForWithoutALimit) {
  api_.FailLists({.code = ErrorCode::kNotFound, .http_status = 404, .message = "no such resource"});
  std::jthread admin([this] {
    ASSERT_TRUE(api_.AwaitLists(10));
    api_.FailLists({.code = ErrorCode::kForbidden, .http_status = 403, .message = "cannot list"});
    ASSERT_TRUE(api_.AwaitLists(20));
    api_.SetList(1, {});
  });
  EXPECT_TRUE(Wait(milliseconds(0)));
  admin.join();
  ASSERT_EQ(problems_.size(), 3u);
  EXPECT_THAT(problems_[0], HasSubstr("CustomResourceDefinition"));
  EXPECT_THAT(problems_[1], HasSubstr("cannot list"));
  EXPECT_EQ(problems_[2], "");
}

TEST_F(WaitForApiServerTest, AStopEndsTheWait) {
  options_.first_pause = std::chrono::hours(1);
  api_.FailLists({.code = ErrorCode::kNotFound, .message = "no such resource"});
  std::jthread stopper([this] {
    EXPECT_TRUE(api_.AwaitLists(1));
    stop_.request_stop();
  });
  const auto waited = Wait(milliseconds(0));
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().message, "stopped before it began");
}

TEST_F(WaitForApiServerTest, OnlyTheTimeSinceItsLastAnswerCounts) {
  const auto began = std::chrono::steady_clock::now();
  const milliseconds timeout(2000);
  api_.FailLists({.code = ErrorCode::kNotFound, .message = "no such resource"});
  std::jthread admin([&] {
    std::this_thread::sleep_until(began + timeout + milliseconds(50));
    api_.FailLists({.code = ErrorCode::kUnavailable, .message = "connection refused"});
    EXPECT_TRUE(api_.AwaitLists(api_.lists() + 3));
    api_.SetList(1, {});
  });
  EXPECT_TRUE(Wait(timeout)) << "it has answered a moment ago";
}

TEST_F(WaitForApiServerTest, TheServersWaitIsKeptUpToTheLongestPause) {
  options_.last_pause = milliseconds(100);
  api_.FailLists({.code = ErrorCode::kTooManyRequests,
                  .message = "slow down",
                  .retry_after = std::chrono::hours(1)});
  const auto began = std::chrono::steady_clock::now();
  std::jthread admin([this] {
    EXPECT_TRUE(api_.AwaitLists(3));
    api_.SetList(1, {});
  });
  EXPECT_TRUE(Wait(std::chrono::hours(1)));
  EXPECT_GE(std::chrono::steady_clock::now() - began, milliseconds(300));
}

}  // namespace
}  // namespace ringmaster::app
