#include "operator/app/leadership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "operator/api/labels.h"
#include "operator/kube/testing/wrapped_api.h"
#include "operator/local/testing/conformance.h"
#include "tests/support/until.h"

namespace ringmaster::app {
namespace {

using kube::Json;
using std::chrono::milliseconds;
using support::Until;
using testing::HasSubstr;

class LeadershipTest : public local::testing::OnEveryServer {
 protected:
  Leadership::Candidacy Candidacy(const std::string& identity) const {
    Leadership::Candidacy candidacy;
    candidacy.ns = ns_;
    candidacy.lease = "ringmaster-operator";
    candidacy.options.identity = identity;
    // The lease lasts far longer than this test.
    candidacy.options.lease_duration = std::chrono::hours(1);
    candidacy.options.renew_deadline = std::chrono::minutes(30);
    candidacy.options.retry_period = milliseconds(50);
    candidacy.elector_api = candidacy.label_api = api_;
    candidacy.on_lost = [](const std::string& why) { ADD_FAILURE() << why; };
    return candidacy;
  }
  std::string LeaderLabelOf(const std::string& pod) {
    const auto got = api_->Get(kube::Pods(), ns_, pod);
    return got ? (*got)["metadata"].value("labels", Json::object()).value(api::kLeaderLabel, "none")
               : "no pod";
  }
};

TEST_P(LeadershipTest, TheSecondLeadsWhenTheFirstGivesTheLeaseBack) {
  Leadership first, second;
  EXPECT_FALSE(first.leads());
  ASSERT_TRUE(first.AwaitElection(Candidacy("a"), {}));
  EXPECT_TRUE(first.leads());
  auto elected =
      std::async(std::launch::async, [&] { return second.AwaitElection(Candidacy("b"), {}); });
  EXPECT_FALSE(second.leads());
  first.Release();
  EXPECT_TRUE(elected.get());
  EXPECT_TRUE(second.leads());
  EXPECT_EQ(second.lease_error(), "");
  second.Release();
}

TEST_P(LeadershipTest, AStopEndsTheWaitForALeaseThatAnotherHas) {
  Leadership first, second;
  ASSERT_TRUE(first.AwaitElection(Candidacy("a"), {}));
  std::stop_source stop;
  auto elected = std::async(std::launch::async,
                            [&] { return second.AwaitElection(Candidacy("b"), stop.get_token()); });
  stop.request_stop();
  EXPECT_FALSE(elected.get());
  EXPECT_FALSE(second.leads());
  second.Release();
  first.Release();
}

TEST_P(LeadershipTest, ThePodHasTheLabelFromSetLabelOn) {
  ASSERT_TRUE(
      api_->Create(kube::Pods(), ns_,
                   {{"metadata", {{"name", "pod"}, {"labels", {{api::kLeaderLabel, "true"}}}}},
                    {"spec", {{"containers", {{{"name", "operator"}, {"image", "x"}}}}}}}));
  Leadership leadership;
  EXPECT_EQ(leadership.label_error(), "") << "there is no label yet that could fail";
  auto candidacy = Candidacy("a");
  candidacy.pod = "pod";
  ASSERT_TRUE(leadership.AwaitElection(std::move(candidacy), {}));
  EXPECT_EQ(LeaderLabelOf("pod"), "none") << "that of an earlier process is cleared";
  EXPECT_EQ(leadership.label_error(), "not labelled yet");
  leadership.SetLabel();
  EXPECT_TRUE(Until([&] { return leadership.label_error().empty(); }));
  EXPECT_EQ(LeaderLabelOf("pod"), "true");
  leadership.RemoveLabel();
  EXPECT_EQ(LeaderLabelOf("pod"), "none");
  leadership.Release();
}

// Lets nobody write until it is told to.
class ClosedApi : public kube::testing::WrappedApi {
 public:
  using WrappedApi::WrappedApi;
  kube::Result<Json> Create(const kube::Resource& resource, const std::string& ns,
                            const Json& object) override {
    if (!open) {
      return tl::unexpected(
          kube::Error{.code = kube::ErrorCode::kUnavailable, .message = "nobody there"});
    }
    return WrappedApi::Create(resource, ns, object);
  }
  std::atomic<bool> open = false;
};

TEST_P(LeadershipTest, WhyTheLeaseIsOutOfReachIsSaidUntilItIsReached) {
  const auto api = std::make_shared<ClosedApi>(api_);
  Leadership leadership;
  EXPECT_EQ(leadership.lease_error(), "") << "there is no election yet";
  auto elected = std::async(std::launch::async, [&] {
    auto candidacy = Candidacy("a");
    candidacy.elector_api = api;
    return leadership.AwaitElection(std::move(candidacy), {});
  });
  EXPECT_TRUE(Until([&] { return !leadership.lease_error().empty(); }));
  EXPECT_THAT(leadership.lease_error(), HasSubstr("nobody there"));
  api->open = true;
  EXPECT_TRUE(elected.get());
  EXPECT_EQ(leadership.lease_error(), "");
  leadership.Release();
}

TEST_P(LeadershipTest, AnElectionThatDoesNotTryForFarLongerThanItMayHangs) {
  Leadership leadership;
  EXPECT_FALSE(leadership.ElectionHangs(Leadership::Clock::now() + std::chrono::hours(1)))
      << "there is none";
  ASSERT_TRUE(leadership.AwaitElection(Candidacy("a"), {}));
  EXPECT_FALSE(leadership.ElectionHangs(Leadership::Clock::now()));
  EXPECT_TRUE(leadership.ElectionHangs(Leadership::Clock::now() + std::chrono::hours(3)));
  EXPECT_FALSE(leadership.ElectionHangs(Leadership::Clock::now() + std::chrono::minutes(40)))
      << "a renewal may take half an hour here";
  leadership.Release();
}

TEST(LeadershipWithoutElectionTest, ItLeadsAtOnceAndHasNeitherLeaseNorLabel) {
  Leadership leadership;
  leadership.LeadAlone();
  EXPECT_TRUE(leadership.leads());
  leadership.SetLabel();
  leadership.RemoveLabel();
  leadership.Release();
  EXPECT_EQ(leadership.label_error(), "");
  EXPECT_EQ(leadership.lease_error(), "");
}

RM_ON_EVERY_SERVER(LeadershipTest);

}  // namespace
}  // namespace ringmaster::app
