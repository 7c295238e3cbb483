#include "sidecar/rendezvous/watch_choice.h"

#include <gtest/gtest.h>

namespace ringmaster::rendezvous {
namespace {

using std::chrono::milliseconds;

std::vector<HeartbeatPeer> Pods(int count) {
  std::vector<HeartbeatPeer> pods;
  for (int i = 0; i < count; ++i) pods.push_back({"p" + std::to_string(i), "x", ""});
  return pods;
}

TEST(PeersToWatch, IsEverybodyInSmallJobsAndNeighboursInLargeOnes) {
  EXPECT_EQ(PeersToWatch(Pods(16), "p3").size(), 15u);
  auto peers = PeersToWatch(Pods(17), "p0");
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_EQ(peers[0].uid, "p1");
  EXPECT_EQ(peers[1].uid, "p16");
  EXPECT_TRUE(PeersToWatch(Pods(1), "p0").empty());
}

TEST(PeersToWatch, TakesThoseThatAreProbedToo) {
  EXPECT_EQ(PeersToWatch(Pods(20), "p0", {"p5", "p0", "elsewhere"}).size(), 3u);
}

TEST(PodsAround, AreEightOnEitherSideAndThoseOfItsNode) {
  std::vector<HeartbeatPeer> pods = Pods(40);
  pods[2].node = pods[20].node = "n1";
  const auto around = PodsAround(pods, "p2");
  EXPECT_EQ(around.size(), 18u);
  EXPECT_EQ(around.count("p34"), 1u) << "around the end";
  EXPECT_EQ(around.count("p10"), 1u);
  EXPECT_EQ(around.count("p11"), 0u);
  EXPECT_EQ(around.count("p20"), 1u) << "on its node";
  EXPECT_TRUE(PodsAround(pods, "elsewhere").empty());
}

TEST(ProbedPods, AreForgottenAfterAWhile) {
  ProbedPods probed;
  probed.Add("a", {"a", "b"}, milliseconds(100));
  probed.Add("c", {"b"}, milliseconds(200));
  EXPECT_TRUE(probed.Around("a"));
  EXPECT_FALSE(probed.Age(milliseconds(99)));
  EXPECT_TRUE(probed.Age(milliseconds(1)));
  EXPECT_FALSE(probed.Around("a"));
  EXPECT_EQ(probed.uids(), std::set<std::string>{"b"}) << "for as long as the longest wants";
  EXPECT_TRUE(probed.Age(milliseconds(100)));
  EXPECT_TRUE(probed.uids().empty());
}

}  // namespace
}  // namespace ringmaster::rendezvous
