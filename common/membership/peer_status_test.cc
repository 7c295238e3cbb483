#include "common/membership/peer_status.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

TEST(PeerStatusTest, ASuspicionIsNewsOnceAndIsTakenBackWhenThePodIsHeard) {
  Floor f(3);
  EXPECT_TRUE(f.peers.Suspect("p1"));
  EXPECT_FALSE(f.peers.Suspect("p1"));
  EXPECT_FALSE(f.peers.Suspect("p0")) << "this pod itself";
  EXPECT_TRUE(f.peers.AnyFault());
  EXPECT_TRUE(f.peers.ClearSuspicion("p1"));
  EXPECT_FALSE(f.peers.ClearSuspicion("p1"));
  EXPECT_FALSE(f.peers.AnyFault());
}

TEST(PeerStatusTest, OnlySilenceIsKnownStillInTheNextView) {
  Floor f(4);
  f.peers.Suspect("p1");
  f.peers.SetReplaced(2);
  f.peers.Accuse(1, 2);
  f.peers.WeighHearsay(f.now);
  f.state.EnterView(TestSuccessor(*f.view));
  f.peers.EnterView();
  EXPECT_EQ(f.peers.SuspectedPods(), (Strings{"p1"}));
  EXPECT_FALSE(f.peers.Gone(2));
  EXPECT_TRUE(f.peers.accusations().empty());
}

TEST(PeerStatusTest, TheCoordinatorCampaignsFirstThenThePodsThatAreLeft) {
  Floor f(4, 3);
  EXPECT_EQ(f.peers.Position(), 3);
  f.peers.Suspect("p0");
  EXPECT_EQ(f.peers.Position(), 2);
  f.peers.SetResignation(1, {});
  EXPECT_EQ(f.peers.Position(), 1);
  EXPECT_EQ(Floor(4, 0).peers.Position(), 0);
}

TEST(PeerStatusTest, AMajorityIsInReachWhereTheRecordMayHelp) {
  Floor odd(3);
  odd.peers.Suspect("p1");
  EXPECT_TRUE(odd.peers.QuorumInReach());
  odd.peers.Suspect("p2");
  EXPECT_FALSE(odd.peers.QuorumInReach());
  Floor even(2);
  EXPECT_FALSE(even.peers.RecordNeeded());
  even.peers.Suspect("p1");
  EXPECT_TRUE(even.peers.QuorumInReach()) << "one of two with the record";
  EXPECT_TRUE(even.peers.RecordNeeded());
}

TEST(PeerStatusTest, ResignationsOfAllOthersReplaceAMajority) {
  Floor f(4);
  for (int pod = 1; pod < 4; ++pod) f.peers.SetResignation(pod, {});
  EXPECT_TRUE(f.peers.QuorumInReach());
  EXPECT_FALSE(f.peers.RecordNeeded());
}

TEST(PeerStatusTest, AReportOfBrokenLinksIsNoReportOfSilence) {
  Floor f(3, 0);
  Message report = f.From(1, MessageKind::kSuspect);
  report.pods = {"p1", "p2", "p9"};
  report.number = 1;
  f.peers.OnSuspect(report, 1, true);
  EXPECT_TRUE(f.peers.link_broken());
  EXPECT_EQ(f.peers.accusations(), (Hearsay::Edges{{1, 2}})) << "not of itself, nor of strangers";
  f.peers.WeighHearsay(f.now);
  EXPECT_TRUE(f.peers.silence_accusations().empty());
  report.number = 0;
  f.peers.OnSuspect(report, 1, true);
  f.peers.WeighHearsay(f.now);
  EXPECT_EQ(f.peers.silence_accusations(), (Hearsay::Edges{{1, 2}}));
}

TEST(PeerStatusTest, ABrokenLinkOfAJobThatEndsIsNoFault) {
  Floor f(3, 0);
  Message report = f.From(1, MessageKind::kSuspect);
  report.number = 1;
  f.peers.OnSuspect(report, 1, false);
  EXPECT_FALSE(f.peers.link_broken());
}

}  // namespace
}  // namespace ringmaster::membership
