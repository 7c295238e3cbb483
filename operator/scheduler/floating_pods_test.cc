#include "operator/scheduler/floating_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class FloatingPodsTest : public testing::Test {
 protected:
  FloatingPodsTest() {
    nodes_.Set({{"metadata", {{"name", "a"}}},
                {"status", {{"allocatable", {{"cpu", "2"}, {"pods", "9"}}}}}});
  }
  void Set(const std::string& uid, const std::string& cpu) {
    const Json pod = {
        {"spec", {{"containers", {{{"resources", {{"requests", {{"cpu", cpu}}}}}}}}}}};
    shapes_.push_back(nodes_.shapes().Of(pod));
    floating_.Set(uid, {"ns/" + uid, "", shapes_.back()});
  }
  // The pods that get places.
  std::vector<std::string> Placed(std::uint64_t growth) {
    std::vector<std::string> placed;
    floating_.PlaceAll(nodes_, growth, [&](const auto& uid, const auto& pod, const auto& node) {
      nodes_.Use(node, pod.shape->requests);
      placed.push_back(uid);
    });
    return placed;
  }
  NodeResources nodes_;
  std::vector<ShapePtr> shapes_;
  FloatingPods floating_;
};

TEST_F(FloatingPodsTest, EachPodCountsOnWhatTheOthersLeave) {
  Set("p", "1");
  Set("q", "1");
  Set("r", "1");
  EXPECT_THAT(Placed(1), ElementsAre("p", "q"));
}

TEST_F(FloatingPodsTest, WhoHasAPlaceFloatsNoMore) {
  Set("p", "1");
  EXPECT_THAT(Placed(1), ElementsAre("p"));
  EXPECT_THAT(Placed(2), IsEmpty());
}

TEST_F(FloatingPodsTest, WhoFitsNowhereIsTriedAgainWhenSomethingHasGrown) {
  Set("large", "3");
  EXPECT_THAT(Placed(1), IsEmpty());
  nodes_.Set({{"metadata", {{"name", "b"}}},
              {"status", {{"allocatable", {{"cpu", "3"}, {"pods", "9"}}}}}});
  EXPECT_THAT(Placed(1), IsEmpty()) << "nothing has grown, as far as it was told";
  EXPECT_THAT(Placed(2), ElementsAre("large"));
}

TEST_F(FloatingPodsTest, ANewPodIsTriedThoughNothingHasGrown) {
  Set("large", "3");
  EXPECT_THAT(Placed(1), IsEmpty());
  Set("small", "1");
  EXPECT_THAT(Placed(1), ElementsAre("small"));
}

TEST_F(FloatingPodsTest, APodOfAnotherShapeIsTriedThoughNothingHasGrown) {
  Set("p", "3");
  EXPECT_THAT(Placed(1), IsEmpty());
  Set("p", "2");
  EXPECT_THAT(Placed(1), ElementsAre("p"));
}

TEST_F(FloatingPodsTest, WhoHasGoneGetsNoPlace) {
  Set("p", "1");
  floating_.Remove("p");
  EXPECT_THAT(Placed(1), IsEmpty());
}

}  // namespace
}  // namespace ringmaster::scheduler
