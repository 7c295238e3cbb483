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
  Message report = f.From(1, MessageKind::kSuspect);
  report.pods = {"p2"};
  f.peers.OnSuspect(report, 1, true);
  report.number = 1;
  f.peers.OnSuspect(report, 1, true);
  f.peers.WeighHearsay(f.now);
  f.state.EnterView(TestSuccessor(*f.view));
  f.peers.EnterView();
  EXPECT_EQ(f.peers.SuspectedPods(), (Strings{"p1"}));
  EXPECT_FALSE(f.peers.Gone(2));
  EXPECT_TRUE(f.peers.accusations().empty());
  EXPECT_FALSE(f.peers.links().broken());
}

// It watches nobody meanwhile. What it still said of silence in the view that lets it in again
// would cost a pod that lives its place.
TEST(PeerStatusTest, APodThatIsOutOfTheViewForgetsWhoWasSilent) {
  Floor f(4, 3);
  f.peers.Suspect("p1");
  f.state.EnterView(TestSuccessor(*f.view));
  f.peers.EnterView();
  View back = *f.view;
  back.parent = back.epoch + 1;
  back.epoch += 2;
  f.state.EnterView(std::make_shared<const View>(std::move(back)));
  f.peers.EnterView();
  EXPECT_TRUE(f.state.in_view());
  EXPECT_TRUE(f.peers.SuspectedPods().empty());
}

TEST(PeerStatusTest, AReportOfBrokenLinksIsNoReportOfSilence) {
  Floor f(3, 0);
  Message report = f.From(1, MessageKind::kSuspect);
  report.pods = {"p1", "p2", "p9"};
  report.number = 1;
  f.peers.OnSuspect(report, 1, true);
  EXPECT_TRUE(f.peers.links().broken());
  EXPECT_EQ(f.peers.accusations(), (Hearsay::Edges{{1, 2}})) << "not of itself, nor of strangers";
  f.peers.WeighHearsay(f.now);
  EXPECT_TRUE(f.peers.hearsay().counted().empty());
  report.number = 0;
  f.peers.OnSuspect(report, 1, true);
  f.peers.WeighHearsay(f.now);
  EXPECT_EQ(f.peers.hearsay().counted(), (Hearsay::Edges{{1, 2}}));
}

TEST(PeerStatusTest, ABrokenLinkOfAJobThatEndsIsNoFault) {
  Floor f(3, 0);
  Message report = f.From(1, MessageKind::kSuspect);
  report.number = 1;
  f.peers.OnSuspect(report, 1, false);
  EXPECT_FALSE(f.peers.links().broken());
}

}  // namespace
}  // namespace ringmaster::membership
