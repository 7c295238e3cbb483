#include "common/membership/succession.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

struct FixedValue : SuccessorSource {
  ViewPtr Successor(bool) const override { return value; }
  ViewPtr value;
};

struct Deciding : Floor {
  explicit Deciding(int self, int pods = 3)
      : Floor(pods, self),
        succession({&state, &peers, &ranks, &workers, &source, &outbox}, Config{}) {
    source.value = TestSuccessor(*view);
  }
  FixedValue source;
  Succession succession;
};

TEST(SuccessionTest, TheSuccessorIsDecidedWhenAMajorityHasAccepted) {
  Deciding f(0);
  f.workers.SetStopped(f.view->epoch);
  EXPECT_TRUE(f.succession.fault());
  f.succession.proposer().Begin();
  f.succession.proposer().Advance();
  EXPECT_FALSE(f.succession.TakeDecision());
  Message accepted = f.From(1, MessageKind::kAccepted, {0, "p0"});
  accepted.value = f.source.value;
  f.succession.Handle(accepted, 1);
  EXPECT_EQ(f.succession.TakeDecision(), f.source.value);
  EXPECT_EQ(f.succession.counters().decided_by_majority, 1u);
}

TEST(SuccessionTest, AHigherBallotOfAnotherProposerEndsTheOwnCampaign) {
  Deciding f(1);
  f.succession.proposer().Begin();
  EXPECT_TRUE(f.succession.changing());
  f.succession.Handle(f.From(2, MessageKind::kPrepare, {1, "p2"}), 2);
  EXPECT_TRUE(f.succession.proposer().idle());
  EXPECT_TRUE(f.succession.proposer().NextDeadline()) << "until that one has had its turn";
}

TEST(SuccessionTest, AResignationCarriesTheProposalThatThePodHadAccepted) {
  Deciding f(1);
  f.workers.SetStopped(f.view->epoch);
  Message resign = f.From(0, MessageKind::kResign);
  resign.promised = resign.accepted = {0, "p0"};
  resign.value = f.source.value;
  f.succession.Handle(resign, 0);
  EXPECT_TRUE(f.peers.resigned(0));
  f.succession.AcceptPending();
  EXPECT_EQ(f.state.stored().accepted, (Ballot{0, "p0"}));
}

TEST(SuccessionTest, AnAcceptanceOfAnotherViewsSuccessorCountsForNothing) {
  Deciding f(0, 1);
  Message accepted = f.From(0, MessageKind::kAccepted, {0, "p0"});
  View other = *f.source.value;
  other.parent = MakeEpoch(7, 7);
  accepted.value = std::make_shared<const View>(other);
  f.succession.Handle(accepted, 0);
  EXPECT_FALSE(f.succession.TakeDecision());
}

TEST(SuccessionTest, APromiseOfAHigherLineageEndsEveryAttempt) {
  Deciding f(1);
  f.succession.proposer().Begin();
  f.succession.Handle(f.From(0, MessageKind::kPrepare, {2, "p2"}), 0);
  f.succession.Abandon();
  EXPECT_FALSE(f.succession.changing());
}

TEST(SuccessionTest, APodResignsWhenAllItsWorkersAreKnownToBeDead) {
  Deciding f(1);
  EXPECT_FALSE(f.succession.CheckWorkers()) << "nothing is known of them yet";
  f.workers.Update(TestCandidate(1).workers);
  EXPECT_FALSE(f.succession.CheckWorkers());
  f.workers.Update({});
  EXPECT_TRUE(f.succession.CheckWorkers());
  EXPECT_TRUE(f.state.stored().resigned);
  EXPECT_TRUE(f.peers.resigned(1));
  EXPECT_FALSE(f.succession.able());
  EXPECT_FALSE(f.succession.CheckWorkers()) << "once";
}

TEST(SuccessionTest, ARefusalOfTheRecordAboutAnotherViewCountsForNothing) {
  Deciding f(1, 2);
  f.succession.proposer().Begin();
  Message refused = f.From(0, MessageKind::kRefused, {1, "p1"});
  refused.promised = {4, "p0"};
  refused.view = MakeEpoch(1, 7);
  f.succession.HandleRecord(refused);
  EXPECT_FALSE(f.succession.proposer().idle());
  refused.view = f.view->epoch;
  f.succession.HandleRecord(refused);
  EXPECT_TRUE(f.succession.proposer().idle());
}

}  // namespace
}  // namespace ringmaster::membership
