// Jobs that ask cluster-autoscaler for nodes by a ProvisioningRequest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/planner/testing/world.h"

namespace ringmaster::planner {
namespace {

using provisioning::RequestFacts;
using provisioning::RequestStage;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr seconds kBound{900};
constexpr char kClass[] = "atomic";
constexpr char kName[] = "digits-1";

// A job that needs two of its three pods, none of which fits, and may call for nodes.
class ProvisioningTest : public testing::Test {
 protected:
  ProvisioningTest() {
    world_.in.job.spec.elastic_policy.min_replicas = 2;
    world_.in.gang_fit =
        scheduler::GangFit{.why = "Insufficient gpu", .domain = "r1", .calls_for_nodes = true};
    world_.in.nodes_within = kBound;
    world_.in.requests = provisioning::Requests{.class_name = kClass, .digest = "d"};
  }
  RequestFacts& Has(RequestStage stage, const std::string& why = "") {
    world_.in.requests->own.push_back({.name = kName,
                                       .uid = "request-uid",
                                       .class_name = kClass,
                                       .count = 2,
                                       .digest = "d",
                                       .domain = "r1",
                                       .created = kNow - seconds(10),
                                       .stage = stage,
                                       .why = why,
                                       .since = kNow});
    return world_.in.requests->own.back();
  }
  // The first two pods stand Pending, and the request has booked capacity for them.
  void Consume() {
    world_.in.gang_fit->calls_for_nodes = false;
    for (const int i : {0, 1}) {
      PodFacts& pod = world_.Pending(i).Pod(i);
      pod.calls_for_nodes = true;
      pod.consumes = kName;
    }
  }
  static std::vector<std::string> Drops(const Decision& decision) {
    std::vector<std::string> names;
    for (const RequestDrop& drop : decision.request_drops) names.push_back(drop.name);
    return names;
  }
  static std::vector<int> Created(const Decision& decision) {
    std::vector<int> indexes;
    for (const PodCreate& create : decision.creates) indexes.push_back(create.index);
    return indexes;
  }
  // The pods that are no longer to name a request.
  static std::vector<std::string> Released(const Decision& decision) {
    std::vector<std::string> names;
    for (const PodAnnotate& a : decision.annotations) {
      if (a.key == provisioning::kConsumeAnnotation && a.value.empty()) names.push_back(a.name);
    }
    return names;
  }
  static const api::Condition& Scheduled(const Decision& decision) {
    return *decision.status.Find("Scheduled");
  }
  static std::vector<std::string> Events(const Decision& decision) {
    std::vector<std::string> reasons;
    for (const Event& event : decision.events) reasons.push_back(event.reason);
    return reasons;
  }
  World world_{3};
};

TEST_F(ProvisioningTest, ItAsksForAsManyPodsAsItNeedsAndMakesNone) {
  const Decision decision = Plan(world_.in);
  ASSERT_TRUE(decision.request);
  EXPECT_EQ(decision.request->count, 2);
  EXPECT_EQ(decision.request->attempt, 1);
  EXPECT_EQ(decision.request->domain, "r1");
  EXPECT_THAT(decision.creates, IsEmpty());
  EXPECT_EQ(Scheduled(decision).reason, "WaitingForNodes");
  EXPECT_THAT(Events(decision), ElementsAre("WaitingForNodes"));
}

TEST_F(ProvisioningTest, ItAsksForNothingBeforeItsTurnAndForNoPodsThatAreRefused) {
  world_.in.gang_fit->calls_for_nodes = false;
  EXPECT_FALSE(Plan(world_.in).request);
  EXPECT_EQ(Scheduled(Plan(world_.in)).reason, "WaitingForRoom");
  world_.in.gang_fit->calls_for_nodes = true;
  world_.in.creation_waits = true;
  EXPECT_FALSE(Plan(world_.in).request);
}

TEST_F(ProvisioningTest, WhatCanNotBeReadIsSaidAndNothingIsMadeOrDropped) {
  Has(RequestStage::kProvisioned);
  world_.in.requests->problem = "can't be read";
  const Decision decision = Plan(world_.in);
  EXPECT_FALSE(decision.request);
  EXPECT_THAT(decision.creates, IsEmpty());
  EXPECT_THAT(Drops(decision), IsEmpty());
  EXPECT_THAT(Scheduled(decision).message, HasSubstr("can't be read"));
}

struct Course {
  const char* name;
  RequestStage stage;
  const char* reason;  // of the condition
  const char* words;
  int admitted;
  bool asks_again;  // an hour later
};

class ProvisioningCourse : public ProvisioningTest, public testing::WithParamInterface<Course> {};

TEST_P(ProvisioningCourse, TheConditionSaysHowFarTheRequestIs) {
  const Course& course = GetParam();
  Has(course.stage, "Why: because");
  Decision decision = Plan(world_.in);
  EXPECT_EQ(Scheduled(decision).reason, course.reason);
  EXPECT_THAT(Scheduled(decision).message, HasSubstr(course.words));
  EXPECT_THAT(Scheduled(decision).message, HasSubstr("Why: because"));
  EXPECT_THAT(Scheduled(decision).message, HasSubstr(kName));
  EXPECT_EQ(static_cast<int>(decision.creates.size()), course.admitted);
  EXPECT_FALSE(decision.request) << "not at once";
  EXPECT_THAT(Drops(decision), IsEmpty());
  world_.in.now = kNow + seconds(3600);
  decision = Plan(world_.in);
  EXPECT_EQ(decision.request.has_value(), course.asks_again);
  EXPECT_EQ(Drops(decision).size(), course.asks_again ? 1u : 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Stages, ProvisioningCourse,
    testing::Values(
        Course{"Asked", RequestStage::kAsked, "WaitingForNodes", "is not accepted yet", 0, true},
        Course{"Accepted", RequestStage::kAccepted, "WaitingForNodes", "is accepted", 0, true},
        Course{"Provisioned", RequestStage::kProvisioned, "WaitingForNodes", "has booked capacity",
               2, false},
        Course{"Expired", RequestStage::kBookingExpired, "ProvisioningFailed", "too short a time",
               0, true},
        Course{"Revoked", RequestStage::kCapacityRevoked, "ProvisioningFailed",
               "has lost its capacity", 0, true},
        Course{"Failed", RequestStage::kFailed, "ProvisioningFailed", "has failed", 0, true}),
    [](const auto& info) { return info.param.name; });

TEST_F(ProvisioningTest, BookedCapacityLetsThePodsStartWithTheNameOfTheRequest) {
  Has(RequestStage::kProvisioned);
  world_.in.gang_fit->calls_for_nodes = false;  // the operator has just started anew
  world_.in.gang_fit->domain = "r2";
  const Decision decision = Plan(world_.in);
  EXPECT_THAT(Created(decision), ElementsAre(0, 1));
  for (const PodCreate& create : decision.creates) {
    EXPECT_TRUE(create.calls_for_nodes);
    EXPECT_EQ(create.domain, "r1") << "that is where the capacity is";
    ASSERT_NE(create.booking, nullptr);
    EXPECT_EQ(create.booking->request, kName);
    EXPECT_EQ(create.booking->class_name, kClass);
  }
  EXPECT_THAT(Events(decision), testing::Contains("NodesProvisioned"));
  EXPECT_THAT(Drops(decision), IsEmpty());
}

TEST_F(ProvisioningTest, APodThatCouldNotBeMadeFollowsTheOthers) {
  Has(RequestStage::kProvisioned);
  Consume();
  world_.in.pods.pop_back();
  const Decision decision = Plan(world_.in);
  EXPECT_THAT(Created(decision), ElementsAre(1));
}

TEST_F(ProvisioningTest, WhereItsNodesAreSeenFirstThePodsNameItAllTheSame) {
  Has(RequestStage::kProvisioned);
  world_.in.gang_fit = scheduler::GangFit{.fit = 3};
  const Decision decision = Plan(world_.in);
  ASSERT_EQ(decision.creates.size(), 3u);
  EXPECT_NE(decision.creates[1].booking, nullptr);
  EXPECT_EQ(decision.creates[2].booking, nullptr) << "it was not asked for the third";
  EXPECT_FALSE(decision.creates[0].calls_for_nodes);
}

TEST_F(ProvisioningTest, TheRequestStaysUntilThePodsHaveNodes) {
  Has(RequestStage::kProvisioned);
  Consume();
  EXPECT_THAT(Drops(Plan(world_.in)), IsEmpty());
  EXPECT_THAT(Scheduled(Plan(world_.in)).message, HasSubstr("has booked capacity"));
  for (const int i : {0, 1}) world_.Pod(i).scheduled = true;
  EXPECT_THAT(Drops(Plan(world_.in)), ElementsAre(kName));
}

TEST_F(ProvisioningTest, WhatIsOfNoUseAnyMoreGoes) {
  struct Case {
    const char* what;
    std::function<void(World&)> change;
  };
  const Case cases[] = {
      {"suspended", [](World& w) { w.in.job.spec.run_policy.suspend = true; }},
      {"another size", [](World& w) { w.in.job.spec.elastic_policy.min_replicas = 3; }},
      {"another template", [](World& w) { w.in.requests->digest = "other"; }},
      {"another class", [](World& w) { w.in.requests->class_name = "other"; }},
      {"a queue decides",
       [](World& w) {
         w.in.gang_fit.reset();
         w.in.queue = kueue::QueueState{.stage = kueue::Stage::kWaits};
       }},
      {"room has appeared", [](World& w) {
         w.in.gang_fit = scheduler::GangFit{.fit = 2};
         for (const int i : {0, 1}) w.Pending(i);
       }}};
  for (const Case& one : cases) {
    world_ = World(3);
    world_.in.job.spec.elastic_policy.min_replicas = 2;
    world_.in.gang_fit = scheduler::GangFit{.why = "Insufficient gpu"};
    world_.in.requests = provisioning::Requests{.class_name = kClass, .digest = "d"};
    Has(RequestStage::kAccepted);
    ASSERT_THAT(Drops(Plan(world_.in)), IsEmpty()) << one.what;
    one.change(world_);
    EXPECT_THAT(Drops(Plan(world_.in)), ElementsAre(kName)) << one.what;
    world_.in.requests->own.back().deleting = true;
    EXPECT_THAT(Drops(Plan(world_.in)), IsEmpty()) << one.what << ", and it goes already";
  }
}

TEST_F(ProvisioningTest, WhatFailsIsTriedAgainMoreAndMoreRarelyButForEver) {
  const std::pair<int, int> kPauses[] = {{1, 60}, {2, 120}, {3, 240}, {6, 1800}, {1000, 1800}};
  RequestFacts& request = Has(RequestStage::kFailed, "OutOfStock: no gpus");
  for (const auto& [attempt, pause] : kPauses) {
    request.attempt = attempt;
    world_.in.now = kNow + seconds(pause - 1);
    Decision decision = Plan(world_.in);
    EXPECT_FALSE(decision.may_call) << "others have their turn meanwhile";
    EXPECT_FALSE(decision.request) << attempt;
    ASSERT_TRUE(decision.look_again);
    EXPECT_LE(*decision.look_again, seconds(2));
    world_.in.now = kNow + seconds(pause);
    decision = Plan(world_.in);
    EXPECT_TRUE(decision.may_call);
    ASSERT_TRUE(decision.request) << attempt;
    EXPECT_EQ(decision.request->attempt, attempt + 1);
    EXPECT_THAT(Drops(decision), ElementsAre(kName)) << "the new one takes its place";
  }
}

TEST_F(ProvisioningTest, AnAutoscalerWhoseClockIsWrongIsAskedAgainAllTheSame) {
  Has(RequestStage::kFailed).since = kNow + std::chrono::hours(1000);
  world_.in.now = kNow + seconds(60);
  EXPECT_TRUE(Plan(world_.in).request);
}

TEST_F(ProvisioningTest, AJobThatIsRefusedStartsWhereRoomAppears) {
  Has(RequestStage::kFailed);
  world_.in.gang_fit = scheduler::GangFit{.fit = 2};
  EXPECT_EQ(Plan(world_.in).creates.size(), 2u);
}

TEST_F(ProvisioningTest, AnAutoscalerThatIsSilentIsNotWaitedForForEver) {
  Has(RequestStage::kAccepted);
  const Time by = kNow - seconds(10) + kBound + seconds(60);
  world_.in.now = by - seconds(1);
  EXPECT_TRUE(Plan(world_.in).calls_for_nodes) << "it keeps its turn";
  world_.in.now = by;
  const Decision decision = Plan(world_.in);
  EXPECT_FALSE(decision.calls_for_nodes);
  EXPECT_EQ(Scheduled(decision).reason, "ProvisioningFailed");
  EXPECT_THAT(Scheduled(decision).message, HasSubstr("not provisioned within 900 s"));
}

TEST_F(ProvisioningTest, WhereItsNodesDoNotComeAnotherOneIsMade) {
  Has(RequestStage::kProvisioned);
  world_.in.job.status.times_given_back = 1;
  world_.in.job.status.last_given_back_time = api::FormatTime(kNow);
  Decision decision = Plan(world_.in);
  EXPECT_THAT(decision.creates, IsEmpty());
  EXPECT_THAT(Scheduled(decision).message, HasSubstr("too few nodes in time"));
  world_.in.now = kNow + seconds(60);
  decision = Plan(world_.in);
  ASSERT_TRUE(decision.request);
  EXPECT_EQ(decision.request->attempt, 2);
}

// No autoscaler makes nodes for a pod that names a request.
TEST_F(ProvisioningTest, PodsWhoseRequestIsOverBecomePodsLikeAnyOthers) {
  RequestFacts& request = Has(RequestStage::kProvisioned);
  Consume();
  EXPECT_THAT(Released(Plan(world_.in)), IsEmpty());
  request.stage = RequestStage::kBookingExpired;
  EXPECT_THAT(Released(Plan(world_.in)), ElementsAre("digits-worker-0", "digits-worker-1"));
  world_.in.requests->own.clear();
  world_.Pod(0).scheduled = true;
  EXPECT_THAT(Released(Plan(world_.in)), ElementsAre("digits-worker-1"));
  world_.in.requests->problem = "can't be read";
  EXPECT_THAT(Released(Plan(world_.in)), IsEmpty()) << "nobody knows";
}

TEST(ProvisioningOfAJobThatTrains, AsksForWhatItLacksAndForNoGrowth) {
  World world = World::Training(3);
  world.in.job.spec.elastic_policy.min_replicas = 3;
  world.in.requests = provisioning::Requests{.class_name = kClass, .digest = "d"};
  world.Remove(2);
  world.in.gang_fit = scheduler::GangFit{.calls_for_nodes = true};
  Decision decision = Plan(world.in);
  ASSERT_TRUE(decision.request);
  EXPECT_EQ(decision.request->count, 1);
  EXPECT_FALSE(decision.calls_for_nodes) << "it takes nobody's turn";
  world.in.job.spec.elastic_policy.min_replicas = 2;
  EXPECT_FALSE(Plan(world.in).request);
}

TEST(ProvisioningOff, WithoutRequestsPodsStandPendingAsBefore) {
  World world(1);
  world.in.gang_fit = scheduler::GangFit{.calls_for_nodes = true};
  const Decision decision = Plan(world.in);
  ASSERT_EQ(decision.creates.size(), 1u);
  EXPECT_TRUE(decision.creates[0].calls_for_nodes);
  EXPECT_EQ(decision.creates[0].booking, nullptr);
  EXPECT_FALSE(decision.request);
}

}  // namespace
}  // namespace ringmaster::planner
