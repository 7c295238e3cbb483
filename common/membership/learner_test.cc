#include "common/membership/learner.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

TEST(LearnerTest, AcceptancesOfOneBallotAreCounted) {
  const ViewPtr view = TestView(3);
  const ViewPtr value = TestSuccessor(*view);
  const std::vector<const Resignation*> nobody(3);
  Learner learner({});
  learner.AddVote({0, "p0"}, value, 0);
  learner.AddVote({1, "p1"}, value, 1);
  EXPECT_FALSE(learner.FindDecision(*view, nobody)) << "two ballots";
  learner.AddVote({1, "p1"}, value, 1);
  EXPECT_FALSE(learner.FindDecision(*view, nobody)) << "the same voter";
  learner.AddVote({1, "p1"}, value, 2);
  ASSERT_TRUE(learner.FindDecision(*view, nobody));
  EXPECT_EQ(learner.FindDecision(*view, nobody)->quorum, Quorum::kMajority);
  learner.EnterView();
  EXPECT_FALSE(learner.FindDecision(*view, nobody));
}

TEST(LearnerTest, AResignationWithAHigherPromiseDecidesNothing) {
  const ViewPtr view = TestView(2);
  Learner learner({});
  learner.AddVote({1, "p0"}, TestSuccessor(*view), 0);
  Resignation resignation;
  resignation.promised = {2, "p1"};
  EXPECT_FALSE(learner.FindDecision(*view, {nullptr, &resignation}));
  resignation.promised = {1, "p0"};
  ASSERT_TRUE(learner.FindDecision(*view, {nullptr, &resignation}));
  EXPECT_EQ(learner.FindDecision(*view, {nullptr, &resignation})->quorum, Quorum::kAll);
}

TEST(LearnerTest, WithoutRoundZeroOnceABallotMayHaveTwoValues) {
  const ViewPtr view = TestView(3);
  const ViewPtr one = TestSuccessor(*view), other = TestSuccessor(*view);
  Learner safe({}), unsafe(ClauseSet().Add(Clause::kRoundZeroOnce));
  for (Learner* learner : {&safe, &unsafe}) {
    learner->AddVote({0, "p0"}, one, 0);
    learner->AddVote({0, "p0"}, other, 1);
  }
  const std::vector<const Resignation*> nobody(3);
  EXPECT_TRUE(safe.FindDecision(*view, nobody));
  EXPECT_FALSE(unsafe.FindDecision(*view, nobody));
}

}  // namespace
}  // namespace ringmaster::membership
