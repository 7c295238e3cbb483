#include "common/membership/campaign_requests.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

struct Asking : Floor {
  explicit Asking(int pods = 3)
      : Floor(pods, 1), requests({&state, &peers, &learner, &outbox}, retry, {}) {
    campaign.phase = Campaign::Phase::kPreparing;
    campaign.ballot = {1, "p1"};
    campaign.promises.Add(1);
  }
  Learner learner{{}};
  Campaign campaign;
  CampaignRequests requests;
};

TEST(CampaignRequestsTest, VotersThatHaveAnsweredOrResignedAreNotAsked) {
  Asking f(4);
  f.campaign.promises.Add(0);
  f.peers.SetResignation(3, {});
  f.requests.Send(f.campaign);
  EXPECT_EQ(f.Take(), Strings{"prepare p2"});
}

TEST(CampaignRequestsTest, TheRecordIsAskedWhenThePodsHaveNotAnsweredOnce) {
  Asking f(2);
  f.requests.Send(f.campaign);
  EXPECT_EQ(f.Take(), Strings{"prepare p0"});
  f.requests.Send(f.campaign);
  EXPECT_EQ(std::get<SendToRecord>(f.actions.back()).message.base, f.view);
  EXPECT_EQ(f.Take(), (Strings{"prepare p0", "prepare record"}));
}

TEST(CampaignRequestsTest, AProposalCarriesTheValueAndGoesToThoseThatHaveNotAccepted) {
  Asking f;
  f.campaign.phase = Campaign::Phase::kProposing;
  f.campaign.value = TestSuccessor(*f.view);
  f.learner.AddVote(f.campaign.ballot, f.campaign.value, 1);
  f.requests.Send(f.campaign);
  EXPECT_EQ(std::get<Send>(f.actions.back()).message.value, f.campaign.value);
  EXPECT_EQ(f.Take(), (Strings{"propose p0", "propose p2"}));
}

TEST(CampaignRequestsTest, TheyAreRepeatedEverMoreSlowlyUntilOnlyAHigherBallotMayHelp) {
  Asking f;
  Duration last{};
  for (int i = 0; i < 5; ++i) {
    f.requests.Send(f.campaign);
    EXPECT_FALSE(f.requests.Due());
    EXPECT_FALSE(f.requests.Exhausted());
    const Duration pause = *f.requests.at() - f.now;
    EXPECT_GE(pause, last);
    last = pause;
    f.Pass(pause);
    EXPECT_TRUE(f.requests.Due());
    EXPECT_EQ(f.requests.Exhausted(), i == 4);
  }
  EXPECT_GT(last, f.retry);
  f.requests.Stop();
  EXPECT_FALSE(f.requests.at());
}

}  // namespace
}  // namespace ringmaster::membership
