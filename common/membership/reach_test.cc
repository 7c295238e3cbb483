#include "common/membership/reach.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

bool QuorumInReach(const Floor& f) { return QuorumInReach(f.state, f.peers, {}); }
bool RecordNeeded(const Floor& f) { return RecordNeeded(f.state, f.peers, {}); }

TEST(ReachTest, TheCoordinatorCampaignsFirstThenThePodsThatAreLeft) {
  Floor f(4, 3);
  EXPECT_EQ(CampaignPosition(f.state, f.peers), 3);
  f.peers.Suspect("p0");
  EXPECT_EQ(CampaignPosition(f.state, f.peers), 2);
  f.peers.SetResignation(1, {});
  EXPECT_EQ(CampaignPosition(f.state, f.peers), 1);
  Floor first(4, 0);
  EXPECT_EQ(CampaignPosition(first.state, first.peers), 0);
}

TEST(ReachTest, AMajorityIsInReachWhereTheRecordMayHelp) {
  Floor odd(3);
  odd.peers.Suspect("p1");
  EXPECT_TRUE(QuorumInReach(odd));
  odd.peers.Suspect("p2");
  EXPECT_FALSE(QuorumInReach(odd));
  Floor even(2);
  EXPECT_FALSE(RecordNeeded(even));
  even.peers.Suspect("p1");
  EXPECT_TRUE(QuorumInReach(even)) << "one of two with the record";
  EXPECT_TRUE(RecordNeeded(even));
}

TEST(ReachTest, ResignationsOfAllOthersReplaceAMajority) {
  Floor f(4);
  for (int pod = 1; pod < 4; ++pod) f.peers.SetResignation(pod, {});
  EXPECT_TRUE(QuorumInReach(f));
  EXPECT_FALSE(RecordNeeded(f));
}

}  // namespace
}  // namespace ringmaster::membership
