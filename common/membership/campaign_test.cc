#include "common/membership/campaign.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

TEST(CampaignTest, TheValueOfTheHighestAcceptedBallotIsAdopted) {
  const ViewPtr low = TestView(2), high = TestView(3);
  Campaign campaign;
  campaign.Adopt({1, "p1"}, high);
  campaign.Adopt({0, "p0"}, low);
  campaign.Adopt({9, "p0"}, nullptr);
  EXPECT_EQ(campaign.value, high);
  EXPECT_EQ(campaign.adopted, (Ballot{1, "p1"}));
}

TEST(CampaignTimerTest, WhoIsFirstInTheOrderDoesNotWait) {
  const Duration step = std::chrono::milliseconds(150);
  const TimePoint now{std::chrono::seconds(1)};
  CampaignTimer timer(step, 1);
  timer.Start(now, 0);
  EXPECT_EQ(timer.at(), now);
  timer.Start(now, 2);
  EXPECT_GE(*timer.at(), now + 2 * step);
  EXPECT_LT(*timer.at(), now + 3 * step) << "before the next in the order, at the latest";
}

TEST(CampaignTimerTest, ItIsShortenedAndNeverLengthened) {
  const TimePoint now{std::chrono::seconds(1)};
  CampaignTimer timer(std::chrono::milliseconds(150), 1);
  timer.Shorten(now, 0);
  EXPECT_FALSE(timer.at()) << "it was not started";
  timer.Expire(now);
  timer.Shorten(now, 5);
  EXPECT_EQ(timer.at(), now);
}

}  // namespace
}  // namespace ringmaster::membership
