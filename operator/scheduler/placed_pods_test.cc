#include "operator/scheduler/placed_pods.h"

#include <gtest/gtest.h>

namespace ringmaster::scheduler {
namespace {

constexpr Moment kSoon = Moment(std::chrono::hours(1));

TEST(PlacedPodsTest, APodThatLeavesIsNewsOnce) {
  PlacedPods placed;
  placed.Set("p", "a", "", {});
  EXPECT_TRUE(placed.SetLeaving("p", kSoon));
  EXPECT_FALSE(placed.SetLeaving("p", kSoon + std::chrono::hours(1)));
  EXPECT_EQ(placed.leaving().at("p"), kSoon + std::chrono::hours(1));
}

TEST(PlacedPodsTest, WhoStaysAfterAllOrHasGoneIsNotLeaving) {
  PlacedPods placed;
  for (const char* uid : {"p", "q"}) {
    placed.Set(uid, "a", "", {});
    placed.SetLeaving(uid, kSoon);
  }
  EXPECT_FALSE(placed.SetLeaving("p", std::nullopt));
  placed.Remove("q");
  EXPECT_TRUE(placed.leaving().empty());
  EXPECT_EQ(placed.Find("q"), nullptr);
}

TEST(PlacedPodsTest, EqualValuesAreStoredOnce) {
  PlacedPods placed;
  const PlacedPods::Pod p = placed.Set("p", "a", "ns/job", {{"cpu", 1}});
  const PlacedPods::Pod q = placed.Set("q", "a", "ns/job", {{"cpu", 1}});
  EXPECT_EQ(p.node, q.node);
  EXPECT_EQ(p.job, q.job);
  EXPECT_EQ(p.requests, q.requests);
  EXPECT_EQ(placed.Set("r", "a", "", {}).job, nullptr) << "it belongs to no job";
}

}  // namespace
}  // namespace ringmaster::scheduler
