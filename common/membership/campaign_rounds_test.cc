#include "common/membership/campaign_rounds.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

TEST(CampaignRoundsTest, TheNextRoundIsAboveAllThatWereHeardOf) {
  CampaignRounds rounds;
  EXPECT_TRUE(rounds.untouched());
  EXPECT_EQ(rounds.Next(0), 1);
  Message message;
  message.ballot = {4, "p1"};
  message.promised = {6, "p2"};
  rounds.Observe(message);
  EXPECT_EQ(rounds.Next(2), 7);
  EXPECT_EQ(rounds.Next(9), 10) << "what was promised counts too";
  EXPECT_EQ(rounds.campaigns(), 3u);
}

TEST(CampaignRoundsTest, ANewViewBeginsAtWhatWasPromisedInIt) {
  CampaignRounds rounds;
  rounds.Next(7);
  rounds.EnterView(-1);
  EXPECT_TRUE(rounds.untouched());
  rounds.EnterView(3);
  EXPECT_FALSE(rounds.untouched());
  EXPECT_EQ(rounds.Next(0), 4);
  EXPECT_EQ(rounds.campaigns(), 2u) << "the counters are over all views";
}

}  // namespace
}  // namespace ringmaster::membership
