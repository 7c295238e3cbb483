#include "common/membership/applicants.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

struct ApplicantsTest : ::testing::Test {
  Message Join(const Candidate& candidate) {
    Message message = f.From(0, MessageKind::kJoin);
    message.from = candidate.pod.uid;
    message.candidate = candidate;
    return message;
  }

  Floor f{2};
  Drains drains{"p0"};
  Timers timers;
  Applicants applicants{{&f.state, &f.peers, &drains, &f.outbox}, timers};
};

TEST_F(ApplicantsTest, TheyAreWaitedForUntilAllExpectedHaveComeOrABatchIsOver) {
  applicants.SetExpected(4);
  applicants.OnJoin(Join(TestCandidate(2)));
  EXPECT_FALSE(applicants.Complete());
  EXPECT_EQ(applicants.NextDeadline(), f.now + timers.join_batch);
  f.Pass(timers.join_batch);
  EXPECT_TRUE(applicants.Complete());
  EXPECT_FALSE(applicants.NextDeadline());
  applicants.SetExpected(3);
  EXPECT_TRUE(applicants.Complete());
}

TEST_F(ApplicantsTest, OneThatDoesNotRepeatItselfHasGivenUp) {
  applicants.OnJoin(Join(TestCandidate(2)));
  f.Pass(timers.join_retry * 5);
  EXPECT_EQ(applicants.Admissible().size(), 1u);
  f.Pass(timers.join_retry);
  EXPECT_TRUE(applicants.Admissible().empty());
}

TEST_F(ApplicantsTest, APodThatLeavesIsNotLetIn) {
  drains.Add({"p2"});
  applicants.OnJoin(Join(TestCandidate(2)));
  EXPECT_TRUE(applicants.Admissible().empty());
}

TEST_F(ApplicantsTest, ANewIncarnationWaitsUntilTheFormerOneIsOutOfTheView) {
  applicants.OnJoin(Join(TestCandidate(1, 2)));
  EXPECT_TRUE(f.peers.Gone(1)) << "it will never answer as what the view lists";
  EXPECT_TRUE(applicants.Admissible().empty());
  f.state.EnterView(TestSuccessor(*f.view));
  f.peers.EnterView();
  applicants.EnterView();
  EXPECT_EQ(applicants.Admissible().size(), 1u);
}

TEST_F(ApplicantsTest, OneThatIsBehindGetsTheViewAndOneThatIsAheadIsAsked) {
  Message behind = Join(TestCandidate(2));
  behind.view = 0;
  applicants.OnJoin(behind);
  EXPECT_EQ(f.Take(), (Strings{"decided p2"}));
  Message ahead = Join(TestCandidate(2));
  ahead.view = MakeEpoch(1, 9);
  applicants.OnJoin(ahead);
  EXPECT_EQ(f.Take(), (Strings{"fetch p2"}));
}

}  // namespace
}  // namespace ringmaster::membership
