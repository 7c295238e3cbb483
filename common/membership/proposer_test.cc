#include "common/membership/proposer.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

struct FixedSource : SuccessorSource {
  ViewPtr Successor(bool) const override { return value; }
  ViewPtr value;
};

struct Candidacy : Floor {
  explicit Candidacy(int self, int pods = 3)
      : Floor(pods, self),
        acceptor({&state, &peers, &ranks, &workers, &learner, &outbox}, {}),
        turn({&state, &peers, &workers, &acceptor, &outbox}, Timers{}.campaign, 1, {}),
        proposer({&state, &peers, &workers, &acceptor, &turn, &source},
                 CampaignRequests({&state, &peers, &learner, &outbox}, Timers{}.retry, {}), {}) {
    source.value = TestSuccessor(*view);
  }
  void StopWorkers() {
    workers.SetStopped(view->epoch);
    proposer.Advance();
  }
  Message Promise(int pod, Ballot ballot, Ballot accepted = {}, ViewPtr value = nullptr) {
    Message message = From(pod, MessageKind::kPromise, std::move(ballot));
    message.accepted = std::move(accepted);
    message.value = std::move(value);
    return message;
  }
  FixedSource source;
  Learner learner{{}};
  Acceptor acceptor;
  CampaignTurn turn;
  Proposer proposer;
};

TEST(ProposerTest, TheCoordinatorProposesInRoundZeroOnceItsWorkersHaveStopped) {
  Candidacy f(0);
  f.proposer.CheckFault(true, true);
  f.proposer.Advance();
  EXPECT_EQ(f.Take(), (Strings{"persist", "stop 1.1"}));
  f.StopWorkers();
  EXPECT_EQ(f.Take(), (Strings{"persist", "propose p1", "propose p2"}));
  EXPECT_EQ(f.proposer.rounds().campaigns(), 0u);
}

TEST(ProposerTest, AnotherMemberWaitsForItsTurnThenCollectsPromises) {
  Candidacy f(1);
  f.proposer.CheckFault(true, true);
  EXPECT_EQ(f.Take(), Strings{});
  ASSERT_TRUE(f.proposer.NextDeadline());
  f.Pass(*f.proposer.NextDeadline() - f.now);
  f.proposer.CheckFault(true, true);
  EXPECT_EQ(f.Take(), (Strings{"persist", "prepare p0", "prepare p2"}));
  f.proposer.OnPromise(f.Promise(2, {1, "p1"}), 2);
  f.proposer.Advance();
  EXPECT_EQ(f.Take(), (Strings{"persist", "stop 1.1"}));
  f.StopWorkers();
  EXPECT_EQ(f.Take(), (Strings{"persist", "propose p0", "propose p2"}));
}

TEST(ProposerTest, AnAcceptedValueThatAPromiseReportsIsProposedInPlaceOfTheOwn) {
  Candidacy f(1);
  const ViewPtr other = TestSuccessor(*f.view);
  f.turn.Postpone();
  f.proposer.Begin();
  f.proposer.OnPromise(f.Promise(2, {1, "p1"}, {0, "p0"}, other), 2);
  f.proposer.Advance();
  f.StopWorkers();
  EXPECT_EQ(std::get<Send>(f.actions.back()).message.value, other);
}

TEST(ProposerTest, AFaultThatHasGoneAwayEndsTheWait) {
  Candidacy f(1);
  f.proposer.CheckFault(true, true);
  EXPECT_TRUE(f.proposer.NextDeadline());
  f.proposer.CheckFault(false, true);
  EXPECT_FALSE(f.proposer.NextDeadline());
  f.proposer.CheckFault(true, false);
  EXPECT_FALSE(f.proposer.NextDeadline());
}

TEST(ProposerTest, NoCampaignBeginsWithoutAQuorumInReachOrAValue) {
  Candidacy f(0);
  f.peers.Suspect("p1");
  f.peers.Suspect("p2");
  f.proposer.Begin();
  EXPECT_TRUE(f.proposer.idle());
  EXPECT_TRUE(f.proposer.NextDeadline()) << "it tries again";
  Candidacy empty(0);
  empty.source.value = nullptr;
  empty.proposer.Begin();
  EXPECT_TRUE(empty.proposer.idle());
}

TEST(ProposerTest, ARefusalEndsTheCampaignAndTheNextOneIsHigher) {
  Candidacy f(1);
  f.proposer.Begin();
  Message refused = f.From(2, MessageKind::kRefused, {1, "p1"});
  refused.promised = {4, "p2"};
  f.proposer.rounds().Observe(refused);
  f.proposer.OnRefused(refused);
  EXPECT_TRUE(f.proposer.idle());
  EXPECT_EQ(f.proposer.rounds().refused(), 1u);
  f.proposer.Begin();
  EXPECT_EQ(std::get<Send>(f.actions.back()).message.ballot, (Ballot{5, "p1"}));
}

TEST(ProposerTest, WithoutAnswersItAsksAgainThenWithAHigherBallot) {
  Candidacy f(1);
  f.proposer.Begin();
  for (int i = 0; i < 5; ++i) {
    f.Pass(*f.proposer.NextDeadline() - f.now);
    f.proposer.Advance();
  }
  EXPECT_EQ(f.proposer.rounds().campaigns(), 2u);
  EXPECT_EQ(std::get<Send>(f.actions.back()).message.ballot, (Ballot{2, "p1"}));
}

TEST(ProposerTest, TheRecordIsAskedWhereThePodsAreNotEnough) {
  Candidacy both(1, 2);
  both.proposer.Begin();
  EXPECT_EQ(both.Take(), (Strings{"persist", "prepare p0"}));
  Candidacy alone(1, 2);
  alone.peers.Suspect("p0");
  alone.proposer.Begin();
  EXPECT_EQ(alone.Take(), (Strings{"persist", "prepare p0", "prepare record"}));
}

TEST(ProposerTest, ACoordinatorThatResignsProposesTheViewWithoutItself) {
  Candidacy f(0);
  f.proposer.Resign();
  EXPECT_EQ(f.Take(), (Strings{"persist", "propose p1", "propose p2"})) << "one write for both";
  EXPECT_TRUE(f.state.stored().resigned);
  EXPECT_EQ(f.state.stored().accepted_value, f.source.value);
  Candidacy other(1);
  other.proposer.Resign();
  EXPECT_EQ(other.Take(), (Strings{"persist"}));
}

}  // namespace
}  // namespace ringmaster::membership
