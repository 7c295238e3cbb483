// A job with thousands of pods: its status fits into an object, and says what it omits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/planner/planner.h"
#include "operator/planner/testing/world.h"

namespace ringmaster::planner {
namespace {

using testing::HasSubstr;

// etcd accepts 1.5 MiB, of which the template may need half.
constexpr std::size_t kMostStatus = 768 << 10;

World Training(int pods) {
  World world = World::Training(pods);
  world.in.job.spec.worker.replicas = pods;
  return world;
}

TEST(LargeJobTest, TheRingSaysHowManyRanksItLeavesOut) {
  World world = Training(1300);
  api::Status status = Plan(world.in).status;
  EXPECT_EQ(status.ring.size(), 1000u);
  EXPECT_EQ(status.ring_omitted, 300);
  EXPECT_EQ(api::StatusFromJson(api::StatusToJson(status)).ring_omitted, 300);
  World small = Training(3);
  status = Plan(small.in).status;
  EXPECT_EQ(status.ring_omitted, 0);
  EXPECT_FALSE(api::StatusToJson(status).contains("ringOmitted"));
}

TEST(LargeJobTest, ProofsAreKeptAThousandAtATimeAndTheOthersStayOnTheirPods) {
  World world = Training(2400);
  for (int i = 0; i < 2300; ++i) {
    PodFacts& pod = world.in.pods[i];
    pod.deleting = pod.all_terminated = pod.proven_dead = pod.has_finalizer = true;
    pod.proof = "terminated";
    pod.delete_at = world.in.now;
    world.in.sidecars[i].connected = false;
  }
  Decision out = Plan(world.in);
  EXPECT_EQ(out.status.proven_dead.size(), 1000u);
  EXPECT_THAT(out.releases, testing::IsEmpty()) << "first the status is written";
  world.in.job.status = out.status;
  out = Plan(world.in);
  EXPECT_EQ(out.status.proven_dead.size(), 1000u);
  EXPECT_EQ(out.releases.size(), 1000u) << "the others are held, and are proof themselves";
  EXPECT_LT(api::StatusToJson(out.status).dump().size(), kMostStatus);
  // A view without any of these pods follows: the others are released, too.
  std::vector<int> rest(100);
  for (int i = 0; i < 100; ++i) rest[i] = 2300 + i;
  world.Members(2, rest);
  out = Plan(world.in);
  EXPECT_THAT(out.status.proven_dead, testing::IsEmpty());
  EXPECT_EQ(out.releases.size(), 2300u);
}

TEST(LargeJobTest, WhatIsToBeToldGrowsWithTheSidecarsAndNotWithThoseThatAreGone) {
  constexpr int kPods = 2000, kGone = 1200;
  World world = Training(kPods);
  for (int i = 0; i < kGone; ++i) {
    PodFacts& pod = world.in.pods[i];
    pod.deleting = pod.all_terminated = pod.proven_dead = pod.has_finalizer = true;
    pod.proof = "terminated";
    pod.delete_at = world.in.now;
    world.in.sidecars[i].connected = false;
  }
  const Decision out = Plan(world.in);
  EXPECT_LT(out.notices.size(), 4u * (kPods - kGone));
}

TEST(LargeJobTest, EndsAreCountedAThousandAtATimeUntilAllAre) {
  World world = Training(2500);
  world.in.job.spec.run_policy.backoff_limit = 100;
  for (int i = 0; i < 2400; ++i) {
    PodFacts& pod = world.in.pods[i];
    pod.phase = PodPhase::kFailed;
    pod.exit_code = 137;
    pod.reason = "Evicted";
    pod.ended_at = world.in.now;
    pod.all_terminated = true;
    world.in.sidecars[i].connected = false;
  }
  int replaced = 0;
  for (const std::size_t left : {1500u, 500u, 100u}) {
    const Decision out = Plan(world.in);
    EXPECT_LE(out.status.accounted_pods.size(), 1000u);
    EXPECT_LT(api::StatusToJson(out.status).dump().size(), kMostStatus);
    world.in.job.status = out.status;
    // Counted pods are deleted, and disappear.
    for (const PodDelete& gone : Plan(world.in).deletes) {
      std::erase_if(world.in.pods, [&](const PodFacts& pod) { return pod.uid == gone.uid; });
    }
    EXPECT_EQ(world.in.pods.size(), left);
    replaced = out.status.pods_replaced;
  }
  EXPECT_EQ(replaced, 2400);
}

TEST(LargeJobTest, OfMoreExitsThanTheStatusListsNoneIsCountedTwice) {
  constexpr int kPods = 1200;
  World world = Training(kPods);
  const auto hear = [&](bool told_before) {
    world.in.exits.clear();
    for (int i = 0; i < kPods; ++i) {
      world.in.exits.push_back({.pod_name = PodName("digits", i),
                                .slot = 0,
                                .exit_code = 137,
                                .restarting = true,
                                .incarnation = 1,
                                .pod_uid = World::Uid(i),
                                .told_before = told_before});
    }
    world.Settle();
    return world.in.job.status;
  };
  api::Status status = hear(false);
  EXPECT_EQ(status.worker_restarts, kPods);
  EXPECT_EQ(status.counted_exits.size(), 1000u);
  EXPECT_EQ(status.counted_exits_omitted, 200);
  EXPECT_LT(api::StatusToJson(status).dump().size(), kMostStatus);
  EXPECT_EQ(hear(true).worker_restarts, kPods);
  for (int i = 0; i < 100; ++i) world.Remove(i);
  status = hear(true);
  EXPECT_EQ(status.worker_restarts, kPods)
      << "there is room in the list, but not what was left out";
  EXPECT_EQ(status.counted_exits.size(), 900u);
  world.in.pods.clear();
  world.in.exits.clear();
  EXPECT_EQ(Plan(world.in).status.counted_exits_omitted, 0);
}

TEST(LargeJobTest, ConditionsNameAFewPodsAndCountTheOthers) {
  World world = Training(1200);
  for (int i = 600; i < 1200; ++i) world.in.sidecars[i].epoch = 0;
  world.Members(2, [] {
    std::vector<int> all(1200);
    for (int i = 0; i < 1200; ++i) all[i] = i;
    return all;
  }());
  membership::View view = *world.in.view;
  view.reason = membership::Reason::kPodLost;
  world.in.view = std::make_shared<const membership::View>(view);
  for (int i = 600; i < 1200; ++i) world.in.sidecars[i].epoch = view.epoch - 1;
  const api::Status status = Plan(world.in).status;
  ASSERT_TRUE(status.Is("Rebuilding"));
  EXPECT_THAT(status.Find("Rebuilding")->message, HasSubstr(" and 596 more"));
  EXPECT_LT(status.Find("Rebuilding")->message.size(), 200u);
}

TEST(LargeJobTest, WhereTheRecordIsLostAFewOfThoseThatAreSilentAreNamed) {
  World world = Training(5000);
  world.in.view = nullptr;
  world.in.lineage = 0;
  world.in.job.status.epoch = membership::MakeEpoch(1, 5);
  for (SidecarFacts& sidecar : world.in.sidecars) sidecar.connected = sidecar.able = false;
  const api::Status status = Plan(world.in).status;
  ASSERT_NE(status.Find("Running"), nullptr);
  EXPECT_EQ(status.Find("Running")->reason, "RecordLost");
  EXPECT_LT(api::StatusToJson(status).dump().size(), kMostStatus);
  EXPECT_LT(status.Find("Running")->message.size(), 2000u);
}

}  // namespace
}  // namespace ringmaster::planner
