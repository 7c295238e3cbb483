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
       "in namespace team",
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

class WaitForApiServerTest : public testing::Test {
 protected:
  kube::Result<void> Wait(milliseconds timeout) {
    ApiWaitOptions options;
    options.timeout = timeout;
    options.first_pause = milliseconds(1);
    options.last_pause = milliseconds(4);
    options.on_problem = [this](const std::string& what) { problems_.push_back(what); };
    return WaitForApiServer(&api_, options, stop_.get_token());
  }
  ScriptedApi api_;
  std::stop_source stop_;
  std::vector<std::string> problems_;
};

TEST_F(WaitForApiServerTest, WhatIsThereIsNotWaitedFor) {
  api_.SetList(1, {});
  EXPECT_TRUE(Wait(milliseconds(0)));
  EXPECT_EQ(api_.lists(), 1);
}

TEST_F(WaitForApiServerTest, AnApiServerThatIsAwayForTooLongEndsTheWait) {
  api_.FailLists({.code = ErrorCode::kUnavailable, .message = "connection refused"});
  const auto waited = Wait(milliseconds(50));
  ASSERT_FALSE(waited);
  EXPECT_THAT(waited.error().message, HasSubstr("connection refused"));
  EXPECT_THAT(waited.error().message, HasSubstr("--api-server-timeout-seconds"));
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
  api_.FailLists({.code = ErrorCode::kNotFound, .message = "no such resource"});
  std::jthread stopper([this] {
    EXPECT_TRUE(api_.AwaitLists(3));
    stop_.request_stop();
  });
  EXPECT_FALSE(Wait(milliseconds(0)));
}

}  // namespace
}  // namespace ringmaster::app
