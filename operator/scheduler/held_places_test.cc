#include "operator/scheduler/held_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::scheduler {
namespace {

using testing::ElementsAre;

HeldPlaces::Place PlaceFor(const std::string& uid, bool gated = false,
                           const std::string& node = "a") {
  return {uid, gated, node, "ns/job", nullptr};
}

TEST(HeldPlacesTest, APodIsFoundByItsUidUntilItsPlaceIsRemoved) {
  HeldPlaces held;
  held.Set("ns/p", PlaceFor("1"));
  EXPECT_EQ(held.PathOfPod("1"), "ns/p");
  held.Remove("ns/p");
  EXPECT_EQ(held.PathOfPod("1"), std::nullopt);
  EXPECT_FALSE(held.Has("ns/p"));
}

TEST(HeldPlacesTest, APodWithTheSameNameTakesOverThePlace) {
  HeldPlaces held;
  held.Set("ns/p", PlaceFor("1"));
  held.Set("ns/p", PlaceFor("2"));
  EXPECT_EQ(held.PathOfPod("1"), std::nullopt) << "what becomes of the earlier pod is its affair";
  EXPECT_EQ(held.PathOfPod("2"), "ns/p");
  EXPECT_EQ(held.size(), 1u);
}

TEST(HeldPlacesTest, PodsThatAreYetToBeCreatedHaveNoUid) {
  HeldPlaces held;
  held.Set("ns/p", PlaceFor(""));
  held.Set("ns/q", PlaceFor(""));
  EXPECT_EQ(held.size(), 2u);
  EXPECT_EQ(held.PathOfPod(""), std::nullopt);
}

TEST(HeldPlacesTest, AMadePodExistsAndHasNoGate) {
  HeldPlaces held;
  held.Set("ns/to-come", PlaceFor(""));
  held.Set("ns/gated", PlaceFor("1", true));
  held.Set("ns/made", PlaceFor("2"));
  EXPECT_FALSE(held.HasForMade("ns/to-come"));
  EXPECT_FALSE(held.HasForMade("ns/gated"));
  EXPECT_TRUE(held.HasForMade("ns/made"));
  EXPECT_FALSE(held.HasForMade("ns/unknown"));
}

TEST(HeldPlacesTest, KnowsWhatIsHeldOnANode) {
  HeldPlaces held;
  held.Set("ns/p", PlaceFor("1", false, "a"));
  held.Set("ns/q", PlaceFor("2", false, "b"));
  held.Set("ns/r", PlaceFor("", false, "a"));
  EXPECT_THAT(held.PathsOn("a"), ElementsAre("ns/p", "ns/r"));
}

}  // namespace
}  // namespace ringmaster::scheduler
