#include <gtest/gtest.h>

#include "operator/planner/planner.h"
#include "operator/planner/snapshot_queries.h"

namespace ringmaster::planner {
namespace {

struct GangCase {
  const char* name;
  int least;    // minReplicas
  int started;  // pods that are there
  int lacking;
  int fit;  // -1: free capacity is not tracked
  std::size_t created;
  const char* reason;
};

class GangTest : public testing::TestWithParam<GangCase> {
 protected:
  GangTest() {
    const GangCase& c = GetParam();
    in_.job.name = "digits";
    in_.job.uid = "job-uid";
    in_.job.spec.worker.replicas = c.started + c.lacking;
    in_.job.spec.elastic_policy.min_replicas = c.least;
    for (int i = 0; i < c.started; ++i) {
      PodFacts pod;
      pod.index = i;
      pod.name = PodName("digits", i);
      pod.uid = "uid-" + std::to_string(i);
      in_.pods.push_back(pod);
    }
    if (c.fit >= 0)
      in_.gang_fit =
          scheduler::GangFit{c.fit, "0/2 nodes are available: 2 Insufficient gpu.", c.fit};
  }
  Snapshot in_;
};

TEST_P(GangTest, CreatesAllThatAreNeededTogetherOrNone) {
  const GangCase& c = GetParam();
  const Decision decision = Plan(in_);
  ASSERT_EQ(decision.creates.size(), c.created);
  for (std::size_t i = 0; i < c.created; ++i) {
    EXPECT_EQ(decision.creates[i].index, c.started + static_cast<int>(i));
  }
  EXPECT_EQ(decision.kept_back, c.lacking - static_cast<int>(c.created));
  const api::Condition* scheduled = decision.status.Find("Scheduled");
  ASSERT_NE(scheduled, nullptr);
  EXPECT_EQ(scheduled->reason, c.reason) << scheduled->message;
  const bool waits = c.created < static_cast<std::size_t>(c.lacking);
  EXPECT_EQ(scheduled->message.find("Insufficient gpu") != std::string::npos, waits)
      << scheduled->message;
  if (!waits) return;
  ASSERT_TRUE(decision.look_again);
  EXPECT_LE(*decision.look_again, std::chrono::seconds(31));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, GangTest,
    testing::Values(GangCase{"AllFit", 2, 0, 4, 4, 4, "WaitingForPods"},
                    GangCase{"TheLeastFits", 2, 0, 4, 2, 2, "WaitingForRoom"},
                    GangCase{"LessThanTheLeastFits", 3, 0, 4, 2, 0, "WaitingForRoom"},
                    GangCase{"NothingFits", 1, 0, 2, 0, 0, "WaitingForRoom"},
                    GangCase{"GrowsOneByOneOnceStarted", 2, 2, 2, 1, 1, "WaitingForRoom"},
                    GangCase{"AReplacementMakesTheLeastAgain", 3, 2, 1, 1, 1, "WaitingForPods"},
                    GangCase{"WhereNobodyCountsAllAreMade", 3, 0, 3, -1, 3, "WaitingForPods"}),
    [](const auto& info) { return info.param.name; });

// They never started, so nothing is lost, and nothing has to be known of gates but that they are
// there.
TEST(GatedPods, ThoseOfAnEarlierOperatorAreDeletedAndOthersAreMadeWhenItIsTheirTurn) {
  Snapshot in;
  in.job.name = "digits";
  in.job.uid = "job-uid";
  in.job.spec.worker.replicas = in.job.spec.elastic_policy.min_replicas = 2;
  for (int i = 0; i < 2; ++i) {
    in.pods.push_back({.name = PodName("digits", i), .uid = "u", .index = i, .gated = true});
  }
  in.gang_fit = scheduler::GangFit{.why = "no gpu"};
  const Decision waits = Plan(in);
  ASSERT_EQ(waits.deletes.size(), 2u);
  EXPECT_EQ(waits.deletes[0].reason, "Gated");
  EXPECT_TRUE(waits.creates.empty());
  EXPECT_EQ(waits.kept_back, 2);
  in.gang_fit->fit = 2;
  EXPECT_EQ(Plan(in).creates.size(), 2u);
  EXPECT_EQ(Plan(in).creates[0].index, 2) << "the names are free later";
  in.gang_fit.reset();
  EXPECT_EQ(Plan(in).deletes.size(), 2u) << "also where nobody counts";
}

// Four pods were created together; two have a node, and the scheduler refuses the others.
class GiveBackTest : public testing::Test {
 protected:
  GiveBackTest() {
    in_.job.name = "digits";
    in_.job.uid = "job-uid";
    in_.job.spec.worker.replicas = in_.job.spec.elastic_policy.min_replicas = 4;
    in_.now = Time(std::chrono::hours(1));
    in_.job.status.start_time = api::FormatTime(in_.now);
    in_.gang_fit = scheduler::GangFit{.fit = 100};
    for (int i = 0; i < 4; ++i) {
      PodFacts pod;
      pod.index = i;
      pod.name = PodName("digits", i);
      pod.uid = "uid-" + std::to_string(i);
      pod.created = in_.now;
      pod.scheduled = i < 2;
      if (i >= 2) pod.waiting = "Unschedulable: 0/2 nodes are available";
      in_.pods.push_back(pod);
    }
  }
  std::size_t GivenBack() {
    const Decision decision = Plan(in_);
    return static_cast<std::size_t>(
        std::count_if(decision.deletes.begin(), decision.deletes.end(),
                      [](const PodDelete& pod) { return pod.reason == "GivenBack"; }));
  }
  Snapshot in_;
};

TEST_F(GiveBackTest, WhatDoesNotAllFindANodeIsGivenBackAfterAWhile) {
  EXPECT_EQ(GivenBack(), 0u);
  EXPECT_LE(*Plan(in_).look_again, std::chrono::seconds(61));
  in_.now += std::chrono::seconds(60);
  const Decision decision = Plan(in_);
  EXPECT_EQ(decision.deletes.size(), 4u) << "also those that hold a place";
  EXPECT_TRUE(decision.deletes_are_one) << "what is left of a gang only holds places";
  EXPECT_TRUE(decision.status_first) << "they are counted before they are gone";
  EXPECT_TRUE(decision.creates.empty());
  EXPECT_EQ(decision.status.times_given_back, 1);
  ASSERT_FALSE(decision.events.empty());
  EXPECT_EQ(decision.events.front().reason, "GivenBack");
}

// A pod may be in a view that the former operator knew.
TEST_F(GiveBackTest, ANewOperatorGivesNothingBackBeforeTheSidecarsCouldCome) {
  in_.now += std::chrono::seconds(60);
  in_.taken_over = in_.now - std::chrono::seconds(1);
  EXPECT_EQ(GivenBack(), 0u);
  EXPECT_TRUE(Plan(in_).look_again);
  in_.now = HeardAllBy(in_);
  EXPECT_EQ(GivenBack(), 4u);
}

// The operator that wrote the status has died before it had deleted them all.
TEST_F(GiveBackTest, WhatTheStatusCountsAsGivenBackGoesAndIsNotCountedAgain) {
  in_.now += std::chrono::seconds(60);
  in_.job.status = Plan(in_).status;
  in_.now += std::chrono::seconds(10);
  Decision decision = Plan(in_);
  EXPECT_EQ(GivenBack(), 4u);
  EXPECT_EQ(decision.status.times_given_back, 1);
  EXPECT_EQ(decision.status.last_given_back_time, in_.job.status.last_given_back_time);
  EXPECT_TRUE(decision.events.empty());
  EXPECT_TRUE(decision.creates.empty());
  in_.pods.resize(2);  // those that have a node
  EXPECT_EQ(GivenBack(), 2u);
  EXPECT_EQ(Plan(in_).status.times_given_back, 1);
}

TEST_F(GiveBackTest, WhoFindsANodeAfterAllStays) {
  in_.now += std::chrono::seconds(60);
  in_.job.status = Plan(in_).status;
  for (PodFacts& pod : in_.pods) pod.scheduled = true;
  EXPECT_EQ(GivenBack(), 0u);
}

TEST_F(GiveBackTest, WhoIsLetStartInThatSecondIsOfTheNextTry) {
  in_.now += std::chrono::seconds(60);
  in_.job.status = Plan(in_).status;
  for (PodFacts& pod : in_.pods) pod.created = in_.now;
  EXPECT_EQ(GivenBack(), 0u);
  in_.now += std::chrono::seconds(60);
  EXPECT_EQ(GivenBack(), 4u);
  EXPECT_EQ(Plan(in_).status.times_given_back, 2);
}

TEST_F(GiveBackTest, ASlowSchedulerIsNoReason) {
  in_.now += std::chrono::hours(1);
  for (PodFacts& pod : in_.pods) pod.waiting.clear();
  EXPECT_EQ(GivenBack(), 0u);
}

TEST_F(GiveBackTest, EnoughToTrainIsNoReason) {
  in_.now += std::chrono::hours(1);
  in_.job.spec.elastic_policy.min_replicas = 2;
  EXPECT_EQ(GivenBack(), 0u);
}

TEST_F(GiveBackTest, ItStandsInLineAgainAndTheSecondTimeLater) {
  in_.now += std::chrono::seconds(60);
  in_.job.status = Plan(in_).status;
  in_.pods.clear();
  Decision decision = Plan(in_);
  EXPECT_EQ(decision.creates.size(), 4u) << "the first time may be an accident";
  EXPECT_EQ(decision.in_line_since, in_.now);
  in_.job.status.times_given_back = 2;
  EXPECT_TRUE(Plan(in_).creates.empty());
  EXPECT_EQ(Plan(in_).kept_back, 4);
  in_.now += std::chrono::seconds(60);
  EXPECT_EQ(Plan(in_).creates.size(), 4u);
}

TEST_F(GiveBackTest, WhoHasLostAPodAndFindsNoRoomForAnotherOneGivesBackTheRest) {
  for (PodFacts& pod : in_.pods) {
    pod.scheduled = true;
    pod.waiting.clear();
  }
  in_.pods.pop_back();
  in_.gang_fit = scheduler::GangFit{.why = "no gpu"};
  in_.now += std::chrono::seconds(60);
  EXPECT_EQ(GivenBack(), 0u) << "whether there is room is asked now";
  in_.job.status = Plan(in_).status;
  EXPECT_EQ(GivenBack(), 3u);
}

TEST_F(GiveBackTest, HowManyPodsHaveToBeMadeIsWhatTheLeastLacks) {
  for (PodFacts& pod : in_.pods) pod.scheduled = true;
  in_.job.spec.worker.replicas = 6;
  in_.pods.pop_back();
  const Decision decision = Plan(in_);
  EXPECT_EQ(decision.creates.size(), 3u);
  EXPECT_EQ(decision.least_creates, 1);
  EXPECT_EQ(decision.useless_alone.size(), 3u);
  EXPECT_EQ(decision.gang_state, scheduler::GangState::kShort);
  in_.job.spec.elastic_policy.min_replicas = 3;
  EXPECT_EQ(Plan(in_).least_creates, 0) << "enough of them stand";
  EXPECT_TRUE(Plan(in_).useless_alone.empty());
  EXPECT_EQ(Plan(in_).gang_state, scheduler::GangState::kRuns);
}

TEST_F(GiveBackTest, WhatCanNotBeMadeNowAsksForNoRoom) {
  in_.pods.clear();
  EXPECT_EQ(Plan(in_).gang_sizes, std::vector<int>{4});
  in_.creation_waits = true;
  const Decision decision = Plan(in_);
  EXPECT_TRUE(decision.gang_sizes.empty());
  EXPECT_TRUE(decision.creates.empty());
  EXPECT_EQ(decision.kept_back, 4);
  EXPECT_EQ(decision.status.Find("Scheduled")->reason, "WaitingForPods");
  EXPECT_NE(decision.status.Find("Scheduled")->message.find("see condition Created"),
            std::string::npos)
      << decision.status.Find("Scheduled")->message;
}

TEST_F(GiveBackTest, WhileItStandsInLineNobodySaysThatThereIsNoRoom) {
  in_.pods.clear();
  in_.gang_fit = scheduler::GangFit{.why = "it stands in line", .decided = false};
  const Decision decision = Plan(in_);
  EXPECT_EQ(decision.status.Find("Scheduled")->reason, "WaitingForPods");
  EXPECT_NE(decision.status.Find("Scheduled")->message.find("stands in line"), std::string::npos);
}

// The record of a suspended job still has its view, but none of its pods exists.
TEST_F(GiveBackTest, AJobThatIsResumedIsAGangAgain) {
  membership::View before;
  before.epoch = membership::MakeEpoch(1, 7);
  before.pods = {{.uid = "gone-0", .name = "digits-worker-0"},
                 {.uid = "gone-1", .name = "digits-worker-1"}};
  in_.view = std::make_shared<const membership::View>(before);
  in_.now += std::chrono::seconds(60);
  EXPECT_EQ(GivenBack(), 4u);
  in_.job.status.times_given_back = 1;
  EXPECT_EQ(Plan(in_).status.times_given_back, 2) << "in a row";
  before.pods[0].uid = "uid-0";
  in_.view = std::make_shared<const membership::View>(before);
  EXPECT_EQ(GivenBack(), 0u) << "this one has its state";
  EXPECT_EQ(Plan(in_).status.times_given_back, 0);
}

TEST_F(GiveBackTest, HalfAGangOfAJobThatIsResumedIsUselessAlone) {
  for (PodFacts& pod : in_.pods) pod.scheduled = true;
  in_.pods.pop_back();
  membership::View before;
  before.epoch = membership::MakeEpoch(1, 7);
  before.pods = {{.uid = "gone-0", .name = "digits-worker-0"}};
  in_.view = std::make_shared<const membership::View>(before);
  EXPECT_EQ(Plan(in_).useless_alone.size(), 3u);
  before.pods[0].uid = "uid-0";
  in_.view = std::make_shared<const membership::View>(before);
  EXPECT_TRUE(Plan(in_).useless_alone.empty());
}

class GrowthTest : public testing::Test {
 protected:
  GrowthTest() {
    in_.job.name = "digits";
    in_.job.uid = "job-uid";
    in_.job.spec.worker.replicas = 4;
    in_.job.spec.elastic_policy.min_replicas = 2;
    in_.now = Time(std::chrono::hours(1));
    membership::View view;
    view.epoch = membership::MakeEpoch(1, 1);
    for (int i = 0; i < 2; ++i) {
      PodFacts pod;
      pod.index = i;
      pod.name = PodName("digits", i);
      pod.uid = "uid-" + std::to_string(i);
      in_.pods.push_back(pod);
      view.pods.push_back({.uid = pod.uid, .name = pod.name});
    }
    in_.view = std::make_shared<const membership::View>(view);
    in_.gang_fit = scheduler::GangFit{1, "0/1 nodes are available."};
    WantsSince({});
  }
  std::size_t Created() { return Plan(in_).creates.size(); }
  void WantsSince(Time since) {
    std::erase_if(in_.job.status.conditions, [](const auto& c) { return c.type == "Scheduled"; });
    in_.job.status.conditions.push_back(
        {.type = "Scheduled", .last_transition_time = api::FormatTime(since)});
  }
  Snapshot in_;
};

TEST_F(GrowthTest, RoomThatAppearsIsTakenOnceInTheInterval) {
  const Decision first = Plan(in_);
  ASSERT_EQ(first.creates.size(), 1u);
  EXPECT_EQ(first.status.last_growth_time, api::FormatTime(in_.now));
  in_.job.status = first.status;
  in_.now += std::chrono::seconds(29);
  const Decision second = Plan(in_);
  EXPECT_EQ(second.creates.size(), 0u);
  EXPECT_EQ(*second.look_again, std::chrono::milliseconds(1010));
  EXPECT_NE(second.status.Find("Scheduled")->message.find("resizeIntervalSeconds (30)"),
            std::string::npos);
  in_.now += std::chrono::seconds(1);
  EXPECT_EQ(Created(), 1u);
}

// Not all pods of a large growth are created in one look.
TEST_F(GrowthTest, AGrowthThatHasBegunGoesOn) {
  in_.job.status.last_growth_time = api::FormatTime(in_.now - std::chrono::seconds(1));
  EXPECT_EQ(Created(), 0u);
  membership::View smaller = *in_.view;
  smaller.pods.pop_back();
  std::erase_if(smaller.ranks, [&](const auto& r) { return r.pod == smaller.pods.size(); });
  in_.view = std::make_shared<const membership::View>(smaller);
  EXPECT_EQ(Created(), 1u) << "one of the pods is on its way into the view";
  in_.now += std::chrono::seconds(10);
  EXPECT_EQ(Created(), 0u) << "it stays outside";
}

TEST_F(GrowthTest, WhatTheUserHasJustAskedForAndReplacementsDontWait) {
  in_.job.status.last_growth_time = api::FormatTime(in_.now);
  EXPECT_EQ(Created(), 0u);
  WantsSince(in_.now - std::chrono::seconds(5));
  EXPECT_EQ(Created(), 1u) << "scaled up";
  WantsSince(in_.now - std::chrono::seconds(11));
  EXPECT_EQ(Created(), 0u);
  in_.job.status.conditions.back().status = true;
  EXPECT_EQ(Created(), 1u) << "it had all that it wanted until now";
  in_.job.status.conditions.back().status = false;
  in_.pods[1].phase = PodPhase::kFailed;
  EXPECT_EQ(Created(), 1u) << "one of the two is lost";
}

TEST_F(GrowthTest, WhoIsResumedDoesNotGrowBeforeHeTrainsAgain) {
  membership::View before;
  before.epoch = membership::MakeEpoch(1, 7);
  before.pods = {{.uid = "gone-0", .name = "digits-worker-0"}};
  in_.view = std::make_shared<const membership::View>(before);
  in_.pods.clear();
  in_.job.status.last_growth_time = api::FormatTime(in_.now);
  in_.gang_fit->fit = 4;
  EXPECT_EQ(Created(), 4u);
}

TEST_F(GrowthTest, OnlyAllowedSizesAreStarted) {
  in_.view = nullptr;
  in_.job.spec.elastic_policy.allowed_sizes = {2, 4};
  const Decision one_fits = Plan(in_);
  EXPECT_EQ(one_fits.creates.size(), 0u) << "three are of no use";
  EXPECT_EQ(one_fits.gang_sizes, std::vector<int>{2});
  in_.gang_fit = scheduler::GangFit{.fit = 2};
  EXPECT_EQ(Created(), 2u);
}

TEST_F(GrowthTest, TheLeastIsAnAllowedSize) {
  in_.view = nullptr;
  in_.pods.clear();
  in_.job.spec.elastic_policy.min_replicas = 2;
  in_.job.spec.elastic_policy.allowed_sizes = {3, 4};
  in_.gang_fit = scheduler::GangFit{.fit = 2, .why = "no gpu", .tried = 2};
  const Decision decision = Plan(in_);
  EXPECT_EQ(decision.creates.size(), 0u);
  EXPECT_EQ(decision.status.Find("Scheduled")->message.find("the least of allowedSizes is 3") !=
                std::string::npos,
            true)
      << decision.status.Find("Scheduled")->message;
}

TEST_F(GrowthTest, BeforeTheFirstViewEveryStartIsPartOfTheFirst) {
  in_.view = nullptr;
  in_.job.status.last_growth_time = api::FormatTime(in_.now);
  EXPECT_EQ(Created(), 1u);
}

}  // namespace
}  // namespace ringmaster::planner
