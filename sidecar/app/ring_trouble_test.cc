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
  ring.EnterView(ViewOf(6));
  EXPECT_FALSE(ring.TakeLasting(ViewOf(5), "u0", SteadyTime(seconds(9))));
  EXPECT_TRUE(ring.Links(nullptr, 1, SteadyTime(seconds(9))).empty()) << "somebody had died";
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
  const membership::View view = ViewOf(8);
  auto links = ring.Links(&view, 2, now + seconds(1));
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[1].pod, "p2");
  EXPECT_EQ(links[1].breaks, 3);
  EXPECT_FALSE(links[1].kept);
  links = ring.Links(&view, 3, now + seconds(1));
  EXPECT_FALSE(links[0].kept) << "nobody would leave it out";
  EXPECT_TRUE(links[1].kept) << "with two pods nobody would train";
  EXPECT_FALSE(ring.Links(nullptr, 3, now + seconds(1))[1].kept) << "in no view together";

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

// The sidecar of one pod while view after view breaks.
struct Breaking {
  // What it takes until it wants another view because the link to `rank` broke; -1: which, it
  // doesn't know.
  SteadyTime::duration Patience(int rank) {
    const SteadyTime broke = now;
    ring.Broke(epoch, rank, broke);
    while (!ring.TakeLasting(ViewOf(epoch), "u0", now)) now += milliseconds(250);
    EnterNext();
    return now - broke;
  }
  void EnterNext() {
    membership::View view = ViewOf(epoch + 1);
    view.parent = epoch++;
    view.reason = membership::Reason::kLinkBroken;
    ring.EnterView(view);
  }

  RingTrouble ring;
  SteadyTime now{seconds(10)};
  Epoch epoch = 2;
};

// Where it is not known which link breaks nobody can be left out, so the tries become rarer.
TEST(RingTroubleTest, AViewThatBreaksBeforeItHasDoneAnythingIsTriedEverMoreRarely) {
  Breaking pod;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(pod.Patience(-1), milliseconds(1500)) << i;
  EXPECT_EQ(pod.Patience(-1), seconds(3));
  for (int i = 0; i < 9; ++i) pod.Patience(-1);
  EXPECT_EQ(pod.Patience(-1), seconds(30));
  pod.ring.Ran(pod.epoch);
  EXPECT_EQ(pod.Patience(-1), milliseconds(1500)) << "this view has done something";
  EXPECT_EQ(pod.Patience(-1), milliseconds(1500));
}

TEST(RingTroubleTest, NewsOfAViewThatIsOverEndNoBadSpell) {
  Breaking pod;
  for (int i = 0; i < 14; ++i) pod.EnterNext();
  pod.ring.Ran(pod.epoch - 1);
  EXPECT_EQ(pod.Patience(-1), seconds(30));
}

// Nor where the job would be too small without either end.
TEST(RingTroubleTest, AnAccusationThatChangesNothingIsSaidEverMoreRarelyAndStillFirst) {
  Breaking pod;
  pod.Patience(3);
  pod.Patience(3);
  EXPECT_EQ(pod.Patience(3), seconds(1));
  EXPECT_EQ(pod.Patience(3), seconds(1));
  EXPECT_EQ(pod.Patience(3), seconds(2));
  EXPECT_EQ(pod.Patience(3), seconds(4));
  for (int i = 0; i < 9; ++i) pod.Patience(3);
  EXPECT_EQ(pod.Patience(3), seconds(20));
}

TEST(RingTroubleTest, ThePodsBecomePatientTogetherWhoeverAsksForTheView) {
  Breaking pod;
  for (int i = 0; i < 5; ++i) pod.EnterNext();
  EXPECT_EQ(pod.Patience(-1), seconds(6));
}

TEST(RingTroubleTest, AccusesThePodOfASuspectedRankInThatViewOnly) {
  RingTrouble ring;
  ring.Suspect(5, 2, SteadyTime());
  ring.Broke(5, 3, SteadyTime());
  EXPECT_TRUE(ring.Accuse(ViewOf(5), 1));
  EXPECT_FALSE(ring.Accuse(ViewOf(5), 0));
  EXPECT_FALSE(ring.Accuse(ViewOf(5), 2)) << "its rank lives";
  EXPECT_FALSE(ring.Accuse(ViewOf(6), 1));
  ring.EnterView(ViewOf(6));
  EXPECT_FALSE(ring.Accuse(ViewOf(5), 1));
}

}  // namespace
}  // namespace ringmaster::app
