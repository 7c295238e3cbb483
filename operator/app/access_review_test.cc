#include "operator/app/access_review.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include "common/tls/certificate.h"
#include "operator/app/http_endpoints.h"
#include "operator/runtime/testing/scripted_api.h"

namespace ringmaster::app {
namespace {

using kube::Json;
using testing::HasSubstr;

// Knows the tokens "prometheus", "tenant" and "reader-...". The first may read /metrics, the others
// logs of team-a.
class ReviewsApi : public runtime::ScriptedApi {
 public:
  bool away = false;
  std::vector<std::string> asked;

  kube::Result<Json> Create(const kube::Resource& resource, const std::string&,
                            const Json& object) override {
    asked.push_back(resource.plural);
    if (away) {
      return tl::unexpected(
          kube::Error{.code = kube::ErrorCode::kUnavailable, .message = "no connection"});
    }
    const Json& spec = object["spec"];
    Json answer = object;
    if (resource.plural == "tokenreviews") {
      const std::string token = spec["token"];
      const bool known = token == "prometheus" || token == "tenant" || token.starts_with("reader-");
      answer["status"] = {{"authenticated", known}};
      if (known) answer["status"]["user"] = {{"username", token}, {"groups", {"g"}}};
      return answer;
    }
    EXPECT_EQ(resource.plural, "subjectaccessreviews");
    const Json attributes = {{"path", "/metrics"}, {"verb", "get"}};
    EXPECT_EQ(spec["groups"], Json({"g"}));
    const Json logs = {
        {"namespace", "team-a"}, {"resource", "pods"}, {"subresource", "log"}, {"verb", "get"}};
    if (spec.contains("resourceAttributes")) {
      answer["status"] = {
          {"allowed", spec["user"] != "prometheus" && spec["resourceAttributes"] == logs}};
      return answer;
    }
    answer["status"] = {
        {"allowed", spec["user"] == "prometheus" && spec["nonResourceAttributes"] == attributes}};
    return answer;
  }
};

class AccessReviewTest : public testing::Test {
 protected:
  int Check(const std::string& authorization, const std::string& path = "/metrics") {
    http::Request request{.path = path, .headers = {}};
    if (!authorization.empty()) request.headers["authorization"] = authorization;
    const auto decision = access_.MayGet(BearerToken(request), request.path);
    why_ = decision.why;
    return decision.status;
  }
  const std::shared_ptr<ReviewsApi> api_ = std::make_shared<ReviewsApi>();
  AccessReview::Clock::time_point now_{};
  AccessReview access_{api_, [this] { return now_; }};
  std::string why_;
};

TEST_F(AccessReviewTest, IsForThoseWhomTheApiServerKnowsAndLets) {
  EXPECT_EQ(Check("Bearer prometheus"), 200);
  EXPECT_EQ(Check("Bearer tenant"), 403);
  EXPECT_EQ(why_,
            "tenant may not get /metrics: a ClusterRole with nonResourceURLs gives the right");
  EXPECT_EQ(Check("Bearer prometheus", "/other"), 403) << "the right is to a path";
  EXPECT_EQ(Check("Bearer made-up"), 401);
}

TEST_F(AccessReviewTest, LogsAreForThoseWhoMayReadThemInThatNamespace) {
  EXPECT_EQ(access_.MayReadLogs("tenant", "team-a").status, 200);
  EXPECT_EQ(access_.MayReadLogs("tenant", "team-b").status, 403);
  EXPECT_EQ(access_.MayReadLogs("prometheus", "team-a").why,
            "prometheus may not get pods/log in namespace team-a: a Role in it gives the right");
  EXPECT_EQ(access_.MayGet("tenant", "/metrics").status, 403) << "the one right is not the other";
}

TEST_F(AccessReviewTest, WhoShowsNoTokenCostsNoCall) {
  for (const char* header : {"", "Bearer ", "Basic cHJvbTpwcm9t", "prometheus"}) {
    EXPECT_EQ(Check(header), 401) << header;
  }
  EXPECT_TRUE(api_->asked.empty());
}

TEST_F(AccessReviewTest, ARightHoldsForAMinuteAndAnApiServerThatIsAwayIsAskedAgain) {
  EXPECT_EQ(Check("Bearer prometheus"), 200);
  EXPECT_EQ(Check("Bearer prometheus"), 200);
  EXPECT_EQ(api_->asked.size(), 2u);
  now_ += std::chrono::seconds(61);
  api_->away = true;
  EXPECT_EQ(Check("Bearer prometheus"), 503);
  EXPECT_THAT(why_, HasSubstr("no connection"));
  api_->away = false;
  EXPECT_EQ(Check("Bearer prometheus"), 200);
}

TEST_F(AccessReviewTest, ARefusalHoldsForAFewSeconds) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Check("Bearer made-up"), 401);
    EXPECT_EQ(why_, "the API server doesn't know this token");
    EXPECT_EQ(Check("Bearer tenant"), 403);
  }
  EXPECT_EQ(api_->asked.size(), 3u);
  now_ += std::chrono::seconds(6);
  EXPECT_EQ(Check("Bearer tenant"), 403);
  EXPECT_EQ(api_->asked.size(), 5u);
}

TEST_F(AccessReviewTest, OfTooManyWhoMayTheOldestIsForgottenAndRefusalsPushNobodyOut) {
  for (int i = 0; i < 65; ++i) {
    now_ += std::chrono::milliseconds(1);
    EXPECT_EQ(access_.MayReadLogs("reader-" + std::to_string(i), "team-a").status, 200);
  }
  for (int i = 0; i < 200; ++i) Check("Bearer made-up-" + std::to_string(i));
  api_->asked.clear();
  for (int i = 64; i > 0; --i) access_.MayReadLogs("reader-" + std::to_string(i), "team-a");
  EXPECT_TRUE(api_->asked.empty());
  access_.MayReadLogs("reader-0", "team-a");
  EXPECT_EQ(api_->asked.size(), 2u);
}

TEST_F(AccessReviewTest, AnEndpointAnswersOnlyThemAndOverTls) {
  const auto now = std::chrono::system_clock::now();
  const auto authority = tls::MakeAuthority(now, std::chrono::hours(1));
  const auto own = tls::Issue(*authority, {"127.0.0.1"}, now, std::chrono::hours(1));
  HttpEndpoints::Protection protection;
  protection.certificate = http::Certificate{own->certificate_pem, own->key_pem};
  protection.refuse = [this](const http::Request& request) -> std::optional<HttpAnswer> {
    const auto decision = access_.MayGet(BearerToken(request), request.path);
    if (decision.status == 200) return std::nullopt;
    return HttpAnswer{.status = decision.status, .body = decision.why};
  };
  const auto endpoints = HttpEndpoints::Listen(
      "--metrics-listen", "127.0.0.1:0",
      {{"/metrics", [] { return HttpAnswer{.body = "figures"}; }}}, protection);
  ASSERT_TRUE(endpoints) << endpoints.error().message;
  httplib::SSLClient client("127.0.0.1", (*endpoints)->port());
  client.enable_server_certificate_verification(false);
  EXPECT_EQ(client.Get("/metrics")->status, 401);
  EXPECT_EQ(client.Get("/nothing")->status, 401) << "what there is is nobody's to know";
  EXPECT_EQ(client.Get("/metrics", {{"Authorization", "Bearer prometheus"}})->body, "figures");
}

}  // namespace
}  // namespace ringmaster::app
