#include "sidecar/app/ring_trouble.h"

#include <gtest/gtest.h>

namespace ringmaster::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Two ranks in this pod, u0, and one in each of two others.
membership::View ViewOf(Epoch epoch) {
  membership::View view;
  view.epoch = epoch;
  view.pods = {
      {.uid = "u0", .name = "p0"}, {.uid = "u1", .name = "p1"}, {.uid = "u2", .name = "p2"}};
  view.ranks = {{.pod = 0}, {.pod = 0}, {.pod = 1}, {.pod = 2}};
  return view;
}

TEST(RingTroubleTest, CountsFromTheFirstWordOnAndOnce) {
  const SteadyTime start(seconds(10));
  RingTrouble ring;
  ring.Suspect(5, 2, start);
  ring.Broke(5, -1, start + milliseconds(1200));
  EXPECT_FALSE(ring.TakeLasting(ViewOf(5), "u0", start + milliseconds(1499)));
  EXPECT_FALSE(ring.TakeLasting(ViewOf(6), "u0", start + seconds(3))) << "of another view";
  const auto lasting = ring.TakeLasting(ViewOf(5), "u0", start + milliseconds(1500));
  ASSERT_TRUE(lasting);
  ASSERT_EQ(lasting->pods.size(), 1u);
  EXPECT_EQ(lasting->pods[0].uid, "u1");
  EXPECT_TRUE(lasting->accused.empty());
  EXPECT_FALSE(ring.TakeLasting(ViewOf(5), "u0", start + seconds(9)));
}

TEST(RingTroubleTest, WhatANewViewHasMendedIsForgotten) {
  RingTrouble ring;
  ring.Broke(5, 2, SteadyTime());
  ring.Clear();
  EXPECT_FALSE(ring.TakeLasting(ViewOf(5), "u0", SteadyTime(seconds(9))));
  EXPECT_TRUE(ring.Links(SteadyTime(seconds(9))).empty()) << "somebody had died";
}

TEST(RingTroubleTest, ALinkThatBreaksTheThirdTimeInTenMinutesAccusesItsOtherEndAndSooner) {
  SteadyTime now(seconds(10));
  RingTrouble ring;
  for (Epoch epoch = 5; epoch < 7; ++epoch) {
    ring.Broke(epoch, 3, now);
    now += minutes(4);
    const auto lasting = ring.TakeLasting(ViewOf(epoch), "u0", now);
    ASSERT_TRUE(lasting && lasting->accused.empty());
  }
  ring.Broke(7, 2, now);
  ring.Broke(7, 3, now);
  EXPECT_FALSE(ring.TakeLasting(ViewOf(7), "u0", now + milliseconds(999)));
  const auto lasting = ring.TakeLasting(ViewOf(7), "u0", now + seconds(1));
  ASSERT_TRUE(lasting);
  EXPECT_EQ(lasting->pods.size(), 2u);
  EXPECT_EQ(lasting->accused, std::vector<std::string>{"u2"});
  const auto links = ring.Links(now + seconds(1));
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[1].pod, "p2");
  EXPECT_EQ(links[1].breaks, 3);

  ring.Broke(8, 3, now + minutes(20));
  const auto later = ring.TakeLasting(ViewOf(8), "u0", now + minutes(21));
  ASSERT_TRUE(later);
  EXPECT_TRUE(later->accused.empty()) << "the others are long ago";
}

TEST(RingTroubleTest, ALinkWithinThePodAccusesNobody) {
  RingTrouble ring;
  for (Epoch epoch = 1; epoch < 9; ++epoch) {
    ring.Broke(epoch, 1, SteadyTime(minutes(epoch)));
    const auto lasting = ring.TakeLasting(ViewOf(epoch), "u0", SteadyTime(minutes(epoch + 1)));
    ASSERT_TRUE(lasting);
    EXPECT_TRUE(lasting->pods.empty() && lasting->accused.empty());
  }
}

// Where it is not known which link breaks nobody can be left out, so the tries become rarer.
TEST(RingTroubleTest, AViewThatBreaksBeforeItHasDoneAnythingIsTriedEverMoreRarely) {
  SteadyTime now(seconds(10));
  RingTrouble ring;
  Epoch epoch = 1;
  const auto patience = [&] {
    const SteadyTime broke = now;
    ring.Broke(++epoch, -1, broke);
    while (!ring.TakeLasting(ViewOf(epoch), "u0", now)) now += milliseconds(250);
    return now - broke;
  };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(patience(), milliseconds(1500)) << i;
  EXPECT_EQ(patience(), seconds(3));
  for (int i = 0; i < 9; ++i) patience();
  EXPECT_EQ(patience(), seconds(30));
  ring.Ran(epoch + 1);
  patience();
  EXPECT_EQ(patience(), milliseconds(1500)) << "a view has done something";
}

TEST(RingTroubleTest, AccusesThePodOfASuspectedRankInThatViewOnly) {
  RingTrouble ring;
  ring.Suspect(5, 2, SteadyTime());
  ring.Broke(5, 3, SteadyTime());
  EXPECT_TRUE(ring.Accuse(ViewOf(5), 1));
  EXPECT_FALSE(ring.Accuse(ViewOf(5), 0));
  EXPECT_FALSE(ring.Accuse(ViewOf(5), 2)) << "its rank lives";
  EXPECT_FALSE(ring.Accuse(ViewOf(6), 1));
  ring.Clear();
  EXPECT_FALSE(ring.Accuse(ViewOf(5), 1));
}

}  // namespace
}  // namespace ringmaster::app
