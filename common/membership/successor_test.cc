#include "common/membership/successor.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

struct Choice : Floor {
  explicit Choice(int pods, int self = 0) : Floor(pods, self) {}
  Strings Pods(bool without_self = false) {
    const ViewPtr next = successor.Successor(without_self);
    Strings uids;
    for (const Pod& pod : next ? next->pods : std::vector<Pod>{}) uids.push_back(pod.uid);
    return uids;
  }
  void AllToBoundary() {
    plan.SetOwnBoundary();
    for (int pod = 0; pod < static_cast<int>(view->pods.size()); ++pod) {
      if (pod != state.self()) plan.OnBoundary(From(pod, MessageKind::kBoundary), pod);
    }
  }
  Drains drains{"p0"};
  Applicants applicants{{&state, &peers, &drains, &outbox}, Timers{}};
  PlannedChange plan{{&state, &workers, &outbox}, Timers{}, {}};
  SuccessorFromFacts successor{{&state, &peers, &ranks, &drains, &applicants, &plan}, {}, {}};
};

TEST(SuccessorTest, AViewMadeForAFaultAdmitsNobody) {
  Choice f(3);
  f.applicants.Add({TestCandidate(7), Reason::kPodJoined});
  f.AllToBoundary();
  EXPECT_EQ(f.Pods(), (Strings{"p0", "p1", "p2", "p7"}));
  f.peers.Suspect("p1");
  EXPECT_EQ(f.Pods(), (Strings{"p0", "p2"}));
}

TEST(SuccessorTest, NobodyJoinsOrLeavesBeforeTheBoundary) {
  Choice f(3);
  f.applicants.Add({TestCandidate(7), Reason::kPodJoined});
  f.drains.Add({"p2"});
  EXPECT_EQ(f.Pods(), (Strings{"p0", "p1", "p2"}));
  f.AllToBoundary();
  EXPECT_EQ(f.Pods(), (Strings{"p0", "p1", "p7"}));
}

// In even numbers of pods only.
struct EvenChoice : Choice {
  explicit EvenChoice(int pods, int self = 0) : Choice(pods, self) {
    successor.SetSizes({.least = 2, .allowed = {2, 4}});
    drains = Drains("none");
  }
  ViewPtr Next() { return successor.Successor(false); }
};

TEST(SuccessorSizesTest, NewcomersWaitForEachOtherUntilTheyMakeAnAllowedSize) {
  EvenChoice f(2);
  f.applicants.SetExpected(3);
  f.applicants.Add({TestCandidate(7), Reason::kPodJoined});
  EXPECT_FALSE(f.successor.ChangeWanted()) << "three may not train";
  f.applicants.Add({TestCandidate(8), Reason::kPodJoined});
  f.applicants.Add({TestCandidate(9), Reason::kPodJoined});
  EXPECT_TRUE(f.successor.ChangeWanted());
  f.AllToBoundary();
  EXPECT_EQ(f.Pods(), (Strings{"p0", "p1", "p7", "p8"}));
  EXPECT_TRUE(f.Next()->train);
}

TEST(SuccessorSizesTest, AfterALossTheOthersAreHeldAndNobodyIsLeftOutInTheMiddleOfAStep) {
  EvenChoice f(4);
  f.peers.Suspect("p1");
  EXPECT_EQ(f.Pods(), (Strings{"p0", "p2", "p3"}));
  EXPECT_FALSE(f.Next()->train);
}

TEST(SuccessorSizesTest, AtTheBoundaryTheLastPodIsLeftOutSoThatTheOthersTrain) {
  EvenChoice f(3);
  EXPECT_TRUE(f.successor.ChangeWanted());
  f.AllToBoundary();
  EXPECT_EQ(f.Pods(), (Strings{"p0", "p1"}));
  EXPECT_TRUE(f.Next()->train);
  EXPECT_EQ(f.Next()->reason, Reason::kPodDrained);
}

TEST(SuccessorSizesTest, WithANewcomerNobodyIsLeftOut) {
  EvenChoice f(3);
  f.applicants.Add({TestCandidate(7), Reason::kPodJoined});
  f.AllToBoundary();
  EXPECT_EQ(f.Pods(), (Strings{"p0", "p1", "p2", "p7"}));
}

// Found by the simulator: the joiner was never let in, and the state would have gone with the
// others.
TEST(SuccessorSizesTest, WhoComesWhileAllOthersLeaveIsLetInWhateverTheSize) {
  EvenChoice f(2);
  f.drains = Drains("p0");
  f.drains.Add({"p0", "p1"});
  f.applicants.SetExpected(1);
  f.applicants.Add({TestCandidate(7), Reason::kPodJoined});
  EXPECT_TRUE(f.successor.ChangeWanted());
  f.AllToBoundary();
  EXPECT_EQ(f.Pods(), (Strings{"p0", "p1", "p7"}));
  EXPECT_FALSE(f.Next()->train);
}

TEST(SuccessorSizesTest, TheCoordinatorIsNotLeftOut) {
  EvenChoice f(3);
  f.successor.SetSizes({.least = 1, .allowed = {1, 4}});
  f.AllToBoundary();
  EXPECT_EQ(f.Pods(), (Strings{"p0"}));
}

TEST(SuccessorSizesTest, WhereNoSmallerNumberMayTrainAllAreHeld) {
  EvenChoice f(3);
  f.successor.SetSizes({.least = 4, .allowed = {2, 4}});
  f.AllToBoundary();
  EXPECT_EQ(f.Pods(), (Strings{"p0", "p1", "p2"}));
  EXPECT_FALSE(f.Next()->train);
}

TEST(SizesTest, TheLargestThatMayTrain) {
  EXPECT_EQ((Sizes{2, {}}).AtMost(7), 7u);
  EXPECT_EQ((Sizes{2, {}}).AtMost(1), 0u);
  EXPECT_EQ((Sizes{2, {1, 2, 6}}).AtMost(5), 2u);
  EXPECT_EQ((Sizes{2, {1, 2, 6}}).AtMost(1), 0u);
  EXPECT_TRUE((Sizes{2, {1, 2, 6}}).MayTrain(6));
  EXPECT_FALSE((Sizes{2, {1, 2, 6}}).MayTrain(3));
  EXPECT_FALSE((Sizes{0, {}}).MayTrain(0));
}

TEST(SuccessorTest, WhereAllAreToLeaveTheyStay) {
  Choice f(2);
  f.drains.Add({"p0", "p1"});
  f.AllToBoundary();
  EXPECT_EQ(f.Pods(), (Strings{"p0", "p1"}));
  EXPECT_FALSE(f.successor.ChangeWanted());
}

TEST(SuccessorTest, AMemberThatResignsIsLeftOutAndNoOtherReasonDropsIt) {
  Choice f(3);
  EXPECT_EQ(f.Pods(true), (Strings{"p1", "p2"}));
  Message report = f.From(1, MessageKind::kSuspect);
  report.pods = {"p0"};
  f.peers.OnSuspect(report, 1, true);
  f.peers.WeighHearsay(f.now);
  EXPECT_EQ(f.Pods(), (Strings{"p0", "p2"})) << "the accuser goes in its place";
}

TEST(SuccessorTest, AChangeIsWantedWhenPodsLeaveOrTheSizeCrossesTheMinimum) {
  Choice f(3);
  EXPECT_FALSE(f.successor.ChangeWanted());
  f.drains.Add({"p2"});
  EXPECT_TRUE(f.successor.ChangeWanted());
  Choice held(3);
  held.successor.SetSizes({.least = 4, .allowed = {}});
  EXPECT_TRUE(held.successor.ChangeWanted());
}

}  // namespace
}  // namespace ringmaster::membership
