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
  SuccessorFromFacts successor{{&state, &peers, &ranks, &drains, &applicants, &plan}, 1, {}};
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
  held.successor.SetMinPods(4);
  EXPECT_TRUE(held.successor.ChangeWanted());
}

}  // namespace
}  // namespace ringmaster::membership
