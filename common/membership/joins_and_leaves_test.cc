#include "common/membership/joins_and_leaves.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

struct Moving : Floor {
  explicit Moving(int self) : Floor(3, self) {}
  // This pod is asked to leave by `deadline`.
  void Drain(TimePoint deadline) { moves.drains().Request({{state.uid()}, deadline}); }
  Timers timers;
  JoinsAndLeaves moves{
      {&state, &peers, &workers, &outbox}, TestCandidate(state.self()).pod, timers};
};

TEST(JoinsAndLeavesTest, ADrainIsOverWhenItsDeadlineHasPassedAndTheWorkersHaveStopped) {
  Moving f(1);
  f.Drain(f.now + std::chrono::seconds(5));
  EXPECT_FALSE(f.moves.DrainOver());
  EXPECT_EQ(f.Take(), Strings{});
  EXPECT_EQ(f.moves.NextDeadline(false), f.now + std::chrono::seconds(5));
  f.Pass(std::chrono::seconds(5));
  EXPECT_FALSE(f.moves.DrainOver());
  EXPECT_EQ(f.Take(), (Strings{"persist", "stop 1.1"}));
  EXPECT_TRUE(f.moves.about_to_resign());
  f.workers.SetStopped(f.view->epoch);
  EXPECT_TRUE(f.moves.DrainOver());
  f.state.Resign();
  EXPECT_FALSE(f.moves.DrainOver()) << "once";
  EXPECT_FALSE(f.moves.about_to_resign());
}

TEST(JoinsAndLeavesTest, NobodyLeavesAJobThatEnds) {
  Moving f(1);
  f.Drain(f.now);
  f.workers.SetFinishing(f.view->epoch);
  EXPECT_FALSE(f.moves.DrainOver());
  EXPECT_FALSE(f.moves.NextDeadline(false));
}

TEST(JoinsAndLeavesTest, OnceAPlanHasBegunNoFurtherApplicantIsWaitedFor) {
  Moving f(0);
  f.moves.applicants().SetExpected(5);
  f.moves.applicants().Add({TestCandidate(7), Reason::kPodJoined});
  EXPECT_EQ(f.moves.NextDeadline(false), f.now + f.timers.join_batch);
  EXPECT_FALSE(f.moves.NextDeadline(true));
}

TEST(JoinsAndLeavesTest, APodThatHasLeftIsNoApplicantAnyMore) {
  Moving f(0);
  f.moves.applicants().Add({TestCandidate(2), Reason::kRejoin});
  f.moves.drains().Add({"p2"});
  f.state.EnterView(TestSuccessor(*f.view));
  f.peers.EnterView();
  f.moves.EnterView(true, false);
  f.moves.FindDepartures(true);
  EXPECT_FALSE(f.moves.left());
  EXPECT_FALSE(f.moves.drains().Contains("p2"));
  EXPECT_FALSE(f.moves.applicants().Complete());
}

TEST(JoinsAndLeavesTest, ThisPodHasLeftWhenTheViewIsWithoutItAsPlanned) {
  Moving f(2);
  f.moves.drains().Add({"p2"});
  f.state.EnterView(TestSuccessor(*f.view));
  f.moves.EnterView(true, false);
  f.moves.FindDepartures(true);
  EXPECT_TRUE(f.moves.left());
  EXPECT_TRUE(f.moves.drains().draining()) << "what it was told is kept";
}

}  // namespace
}  // namespace ringmaster::membership
