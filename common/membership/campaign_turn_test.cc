#include "common/membership/campaign_turn.h"

#include "common/membership/learner.h"
#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

struct Queue : Floor {
  explicit Queue(int self, int pods = 3)
      : Floor(pods, self),
        acceptor({&state, &peers, &ranks, &workers, &learner, &outbox}, {}),
        turn({&state, &peers, &workers, &acceptor, &outbox}, step, 1, {}) {}
  static constexpr Duration step = std::chrono::milliseconds(150);
  Learner learner{{}};
  Acceptor acceptor;
  CampaignTurn turn;
};

TEST(CampaignTurnTest, ItComesAtOnceForTheFirstInTheOrderAndLaterForTheNext) {
  Queue first(0);
  EXPECT_TRUE(first.turn.HasCome(true, true));
  Queue second(1);
  EXPECT_FALSE(second.turn.HasCome(true, true));
  second.Pass(*second.turn.at() - second.now);
  EXPECT_TRUE(second.turn.HasCome(true, true));
}

TEST(CampaignTurnTest, WithoutAFaultOrLeaveNothingIsWaitedFor) {
  Queue f(1);
  EXPECT_FALSE(f.turn.HasCome(true, true));
  EXPECT_TRUE(f.turn.at());
  EXPECT_FALSE(f.turn.HasCome(false, true));
  EXPECT_FALSE(f.turn.at());
  f.turn.Postpone();
  EXPECT_FALSE(f.turn.HasCome(true, false));
  EXPECT_FALSE(f.turn.at());
}

TEST(CampaignTurnTest, AnAttemptOfAnotherIsWaitedForUnlessItHasGoneSilent) {
  Queue f(1);
  ASSERT_TRUE(f.acceptor.OnPropose({1, "p2"}, TestSuccessor(*f.view), "p2"));
  f.turn.Postpone();
  const TimePoint waiting = *f.turn.at();
  EXPECT_FALSE(f.turn.HasCome(true, true));
  EXPECT_EQ(f.turn.at(), waiting);
  f.peers.Suspect("p0");
  f.peers.Suspect("p2");
  EXPECT_TRUE(f.turn.HasCome(true, true)) << "first in the order, and the proposer is silent";
}

TEST(CampaignTurnTest, AResignationRestartsTheOrderWhileNothingIsProposed) {
  Queue f(1);
  f.turn.Postpone();
  f.turn.RestartOrder();
  EXPECT_FALSE(f.turn.at());
  ASSERT_TRUE(f.acceptor.OnPropose({0, "p0"}, TestSuccessor(*f.view), "p0"));
  f.turn.Postpone();
  f.turn.RestartOrder();
  EXPECT_TRUE(f.turn.at());
}

}  // namespace
}  // namespace ringmaster::membership
