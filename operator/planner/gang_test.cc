#include <gtest/gtest.h>

#include "operator/planner/planner.h"

namespace ringmaster::planner {
namespace {

struct GangCase {
  const char* name;
  int least;    // minReplicas
  int started;  // pods without the gate
  int gated;
  int fit;  // -1: nobody counts the nodes
  std::size_t admitted;
  const char* reason;
};

class GangTest : public testing::TestWithParam<GangCase> {
 protected:
  GangTest() {
    const GangCase& c = GetParam();
    in_.job.name = "digits";
    in_.job.uid = "job-uid";
    in_.job.spec.worker.replicas = c.started + c.gated;
    in_.job.spec.elastic_policy.min_replicas = c.least;
    for (int i = 0; i < c.started + c.gated; ++i) {
      PodFacts pod;
      pod.index = i;
      pod.name = PodName("digits", i);
      pod.uid = "uid-" + std::to_string(i);
      pod.gated = i >= c.started;
      in_.pods.push_back(pod);
    }
    if (c.fit >= 0)
      in_.gang_fit = scheduler::GangFit{c.fit, "0/2 nodes are available: 2 Insufficient gpu."};
  }
  Snapshot in_;
};

TEST_P(GangTest, AdmitsAllThatAreNeededTogetherOrNone) {
  const GangCase& c = GetParam();
  const Decision decision = Plan(in_);
  ASSERT_EQ(decision.admits.size(), c.admitted);
  for (std::size_t i = 0; i < c.admitted; ++i) {
    EXPECT_EQ(decision.admits[i].name, PodName("digits", c.started + static_cast<int>(i)));
  }
  const api::Condition* scheduled = decision.status.Find("Scheduled");
  ASSERT_NE(scheduled, nullptr);
  EXPECT_EQ(scheduled->reason, c.reason) << scheduled->message;
  const bool waits = c.admitted < static_cast<std::size_t>(c.gated);
  EXPECT_EQ(scheduled->message.find("Insufficient gpu") != std::string::npos, waits)
      << scheduled->message;
  if (!waits) return;
  ASSERT_TRUE(decision.look_again);
  EXPECT_LE(*decision.look_again, std::chrono::seconds(3));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, GangTest,
    testing::Values(GangCase{"AllFit", 2, 0, 4, 4, 4, "WaitingForPods"},
                    GangCase{"TheLeastFits", 2, 0, 4, 2, 2, "WaitingForRoom"},
                    GangCase{"LessThanTheLeastFits", 3, 0, 4, 2, 0, "WaitingForRoom"},
                    GangCase{"NothingFits", 1, 0, 2, 0, 0, "WaitingForRoom"},
                    GangCase{"GrowsOneByOneOnceStarted", 2, 2, 2, 1, 1, "WaitingForRoom"},
                    GangCase{"AReplacementMakesTheLeastAgain", 3, 2, 1, 1, 1, "WaitingForPods"},
                    GangCase{"GatesOfAnEarlierOperatorGo", 3, 0, 3, -1, 3, "WaitingForPods"}),
    [](const auto& info) { return info.param.name; });

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
    for (int i = 0; i < 4; ++i) {
      PodFacts pod;
      pod.index = i;
      pod.name = PodName("digits", i);
      pod.uid = "uid-" + std::to_string(i);
      pod.gated = i >= 2;
      in_.pods.push_back(pod);
      if (i < 2) view.pods.push_back({.uid = pod.uid, .name = pod.name});
    }
    in_.view = std::make_shared<const membership::View>(view);
    in_.gang_fit = scheduler::GangFit{1, "0/1 nodes are available."};
  }
  std::size_t Admitted() { return Plan(in_).admits.size(); }
  Snapshot in_;
};

TEST_F(GrowthTest, RoomThatAppearsIsTakenOnceInTheInterval) {
  const Decision first = Plan(in_);
  ASSERT_EQ(first.admits.size(), 1u);
  EXPECT_EQ(first.status.last_growth_time, api::FormatTime(in_.now));
  in_.job.status = first.status;
  in_.now += std::chrono::seconds(29);
  const Decision second = Plan(in_);
  EXPECT_EQ(second.admits.size(), 0u);
  EXPECT_EQ(*second.look_again, std::chrono::milliseconds(1010));
  EXPECT_NE(second.status.Find("Scheduled")->message.find("resizeIntervalSeconds (30)"),
            std::string::npos);
  in_.now += std::chrono::seconds(1);
  EXPECT_EQ(Admitted(), 1u);
}

TEST_F(GrowthTest, WhatTheUserHasJustAskedForAndReplacementsDontWait) {
  in_.job.status.last_growth_time = api::FormatTime(in_.now);
  EXPECT_EQ(Admitted(), 0u);
  in_.pods[2].created = in_.now - std::chrono::seconds(5);
  EXPECT_EQ(Admitted(), 1u) << "scaled up";
  in_.pods[2].created = {};
  in_.pods[1].phase = PodPhase::kFailed;
  EXPECT_EQ(Admitted(), 1u) << "one of the two is lost";
}

TEST_F(GrowthTest, BeforeTheFirstViewEveryStartIsPartOfTheFirst) {
  in_.view = nullptr;
  in_.job.status.last_growth_time = api::FormatTime(in_.now);
  EXPECT_EQ(Admitted(), 1u);
}

}  // namespace
}  // namespace ringmaster::planner
