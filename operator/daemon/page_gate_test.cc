#include "operator/daemon/page_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/runtime/testing/scripted_api.h"

namespace ringmaster::daemon {
namespace {

using kube::Json;
using testing::HasSubstr;
using testing::Not;

// Knows the tokens "viewer" and "tenant". The viewer may see the page, and the logs of team-a.
class ReviewsApi : public runtime::ScriptedApi {
 public:
  bool viewer_may = true;
  bool viewer_is_known = true;

  kube::Result<Json> Create(const kube::Resource& resource, const std::string&,
                            const Json& object) override {
    const Json& spec = object["spec"];
    Json answer = object;
    if (resource.plural == "tokenreviews") {
      const std::string token = spec["token"];
      answer["status"] = {
          {"authenticated", (token == "viewer" && viewer_is_known) || token == "tenant"},
          {"user", {{"username", token}}}};
      return answer;
    }
    const bool asks_for_page =
        spec.value("/nonResourceAttributes/path"_json_pointer, "") == "/page";
    const bool asks_for_logs =
        spec.value("/resourceAttributes/namespace"_json_pointer, "") == "team-a";
    answer["status"] = {
        {"allowed", spec["user"] == "viewer" && viewer_may && (asks_for_page || asks_for_logs)}};
    return answer;
  }
};

class PageGateTest : public testing::Test {
 protected:
  explicit PageGateTest(bool over_tls = true)
      : gate_(std::make_unique<app::AccessReview>(api_, [this] { return now_; }), over_tls,
              [this] { return now_; }) {}

  page::Admission Admit(const std::string& path, std::map<std::string, std::string> headers = {}) {
    return gate_.Admit({.path = path, .headers = std::move(headers)});
  }
  // Returns 200 if the request is admitted.
  int StatusOf(const page::Admission& admission) {
    return admission.instead ? admission.instead->status : 200;
  }
  static std::map<std::string, std::string> Bearer(const std::string& token) {
    return {{"authorization", "Bearer " + token}};
  }
  // The header Set-Cookie after a login.
  std::string LogIn() {
    const auto admission = Admit("/login", Bearer("viewer"));
    EXPECT_EQ(StatusOf(admission), 200);
    return admission.headers.empty() ? "" : admission.headers[0].second;
  }
  static std::map<std::string, std::string> Cookie(const std::string& set_cookie) {
    return {{"cookie", set_cookie.substr(0, set_cookie.find(';'))}};
  }

  const std::shared_ptr<ReviewsApi> api_ = std::make_shared<ReviewsApi>();
  PageGate::Clock::time_point now_{};
  PageGate gate_;
};

TEST_F(PageGateTest, IsForThoseWhomTheApiServerKnowsAndLets) {
  for (const char* path : {"/", "/api/jobs", "/api/stream", "/api/log", "/page.js", "/nothing"}) {
    EXPECT_EQ(StatusOf(Admit(path)), 401) << path;
    EXPECT_EQ(StatusOf(Admit(path, Bearer("made-up"))), 401) << path;
    EXPECT_EQ(StatusOf(Admit(path, Bearer("tenant"))), 403) << path;
    EXPECT_EQ(StatusOf(Admit(path, Bearer("viewer"))), 200) << path;
  }
}

TEST_F(PageGateTest, WhoComesWithoutATokenSeesWhereToShowOneAndNothingElse) {
  EXPECT_THAT(Admit("/").instead->body, HasSubstr("/login.js"));
  EXPECT_THAT(Admit("/api/jobs").instead->body, Not(HasSubstr("<")));
  EXPECT_EQ(StatusOf(Admit("/login.js")), 200);
}

TEST_F(PageGateTest, ATokenThatWasShownOnceIsKeptHereAndACookieStandsForIt) {
  const std::string cookie = LogIn();
  EXPECT_THAT(cookie, testing::StartsWith("__Host-ringmaster-page="));
  EXPECT_THAT(cookie, HasSubstr("; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200; Secure"));
  EXPECT_THAT(cookie, Not(HasSubstr("viewer")));
  EXPECT_EQ(StatusOf(Admit("/api/jobs", Cookie(cookie))), 200);
  EXPECT_EQ(StatusOf(Admit("/api/jobs", Cookie("__Host-ringmaster-page=made-up"))), 401);
  now_ += PageGate::kSession;
  EXPECT_EQ(StatusOf(Admit("/api/jobs", Cookie(cookie))), 401) << "it is over";
}

TEST_F(PageGateTest, WhoMayNotGetsNoCookie) {
  for (const auto& [token, status] : {std::pair{"tenant", 403}, std::pair{"made-up", 401}}) {
    const auto admission = Admit("/login", Bearer(token));
    EXPECT_EQ(StatusOf(admission), status);
    EXPECT_TRUE(admission.headers.empty());
  }
}

TEST_F(PageGateTest, ARightThatIsTakenAwayEndsSessionsAndStreamsWithinAMinute) {
  const std::string cookie = LogIn();
  const auto stream = Admit("/api/stream", Cookie(cookie));
  EXPECT_TRUE(stream.holds());
  api_->viewer_may = false;
  EXPECT_TRUE(stream.holds()) << "the API server is not asked at every look";
  now_ += std::chrono::seconds(61);
  EXPECT_FALSE(stream.holds());
  EXPECT_EQ(StatusOf(Admit("/api/jobs", Cookie(cookie))), 403);
}

TEST_F(PageGateTest, ATokenThatIsNoLongerKnownEndsItsSessionForGood) {
  const std::string cookie = LogIn();
  api_->viewer_is_known = false;
  now_ += std::chrono::seconds(61);
  EXPECT_EQ(StatusOf(Admit("/api/jobs", Bearer("made-up"))), 401);
  EXPECT_EQ(StatusOf(Admit("/api/jobs", Cookie(cookie))), 401);
  api_->viewer_is_known = true;
  now_ += std::chrono::seconds(61);
  EXPECT_EQ(StatusOf(Admit("/api/jobs", Cookie(cookie))), 401) << "its token is not kept";
}

TEST_F(PageGateTest, LogsWantARightOfTheirOwn) {
  const auto admission = Admit("/api/log", Bearer("viewer"));
  EXPECT_FALSE(admission.keeps_from_logs("team-a"));
  const auto refusal = admission.keeps_from_logs("team-b");
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 403);
  EXPECT_THAT(refusal->body, HasSubstr("viewer may not get pods/log in namespace team-b"));
}

TEST_F(PageGateTest, OfTooManySessionsTheOldestGoes) {
  const std::string first = LogIn();
  now_ += std::chrono::seconds(1);
  const std::string second = LogIn();
  for (std::size_t i = 1; i < PageGate::kMostSessions; ++i) LogIn();
  EXPECT_EQ(StatusOf(Admit("/", Cookie(first))), 401);
  EXPECT_EQ(StatusOf(Admit("/", Cookie(second))), 200);
}

class PageGateOnLoopbackTest : public PageGateTest {
 protected:
  PageGateOnLoopbackTest() : PageGateTest(false) {}
};

TEST_F(PageGateOnLoopbackTest, WithoutTlsTheCookieIsOneThatBrowsersTakeThere) {
  const std::string cookie = LogIn();
  EXPECT_THAT(cookie, testing::StartsWith("ringmaster-page="));
  EXPECT_THAT(cookie, Not(HasSubstr("Secure")));
  EXPECT_EQ(StatusOf(Admit("/", Cookie(cookie))), 200);
}

}  // namespace
}  // namespace ringmaster::daemon
