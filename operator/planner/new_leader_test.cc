// An operator that has just taken over the job: silence of sidecars means nothing yet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/planner/testing/stalled.h"

namespace ringmaster::planner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Pods 1 and 2 of four are dead, those of `unheard` have never connected, and the operator has had
// the job for `since`.
Stalled WithANewLeader(seconds since, const std::vector<int>& unheard) {
  Stalled job(4);
  job.ProvenDead(1).ProvenDead(2);
  for (const int index : unheard) {
    std::erase_if(job.in.sidecars, [&](const SidecarFacts& s) { return s.pod_uid == Uid(index); });
  }
  job.in.taken_over = job.in.view_since = kNow - since;
  return job;
}

TEST(NewLeaderTest, NobodyIsCalledSilentBeforeHeHadTimeToCome) {
  Stalled job = WithANewLeader(kSidecarsReturn - seconds(4), {0, 3});
  Decision out = Plan(job.in);
  EXPECT_EQ(out.recover, 0u);
  EXPECT_FALSE(out.status.Find("Rebuilding") != nullptr &&
               out.status.Find("Rebuilding")->reason == "WaitingForProof");
  EXPECT_THAT(Reasons(out), testing::Not(testing::Contains("WaitingForProof")));
  ASSERT_TRUE(out.look_again);
  EXPECT_LE(*out.look_again, seconds(4) + std::chrono::milliseconds(100));
  job.in.now += seconds(4);
  out = Plan(job.in);
  EXPECT_THAT(Reasons(out), testing::Contains("WaitingForProof")) << "he had his time";
  EXPECT_THAT(out.status.Find("Rebuilding")->message,
              HasSubstr("digits-worker-0 on node node-0, digits-worker-3 on node node-3"));
}

TEST(NewLeaderTest, WhoWasHeardAndLeftIsSilent) {
  Stalled job = WithANewLeader(kSidecarsReturn - seconds(4), {});
  job.Silent(3);
  EXPECT_THAT(Reasons(Plan(job.in)), testing::Contains("WaitingForProof"));
}

TEST(NewLeaderTest, WithAllTheEvidenceItRecoversAsSoonAsAnOldOne) {
  Stalled job = WithANewLeader(kSidecarsReturn - seconds(4), {});
  job.ProvenDead(3);
  EXPECT_EQ(Plan(job.in).recover, 2u);
}

TEST(NewLeaderTest, WhatTheFormerOneSaidIsLeftUntilMoreIsKnown) {
  Stalled job = WithANewLeader(kSidecarsReturn + seconds(1), {0, 3});
  job.in.job.status = Plan(job.in).status;
  const std::string said = job.in.job.status.Find("Rebuilding")->message;
  job.in.taken_over = kNow;
  Decision out = Plan(job.in);
  EXPECT_EQ(out.status.Find("Rebuilding")->reason, "WaitingForProof");
  EXPECT_EQ(out.status.Find("Rebuilding")->message, said);
  EXPECT_FALSE(out.status.Is("Running"));
  EXPECT_THAT(Reasons(out), testing::Not(testing::Contains("WaitingForProof"))) << "no news";
  SidecarFacts heard;
  heard.pod_uid = Uid(0);
  heard.connected = heard.able = true;
  job.in.sidecars.push_back(heard);
  out = Plan(job.in);
  EXPECT_NE(out.status.Find("Rebuilding")->reason, "WaitingForProof") << "one says that it trains";
}

TEST(NewLeaderTest, AnEarlierTroubleThatIsOverIsNotTakenUpAgain) {
  Stalled job = WithANewLeader(kSidecarsReturn - seconds(4), {0, 3});
  job.in.job.status.conditions = {{"Rebuilding", false, "WaitingForProof", "", "", 1}};
  EXPECT_FALSE(Plan(job.in).status.Is("Rebuilding") &&
               Plan(job.in).status.Find("Rebuilding")->reason == "WaitingForProof");
  job.in.job.status.conditions = {{"Rebuilding", true, "WorkerLost", "", "", 1}};
  EXPECT_EQ(Plan(job.in).status.Find("Rebuilding")->reason, "Bootstrap");
}

TEST(NewLeaderTest, WhoMayBeOnTheWayIsNotForkedAwayFrom) {
  Stalled job = WithANewLeader(kSidecarsReturn - seconds(4), {3});
  job.Fork();
  EXPECT_EQ(Plan(job.in).recover, 0u);
  job.in.now += seconds(4);
  EXPECT_EQ(Plan(job.in).recover, 2u);
}

TEST(NewLeaderTest, ARecoveryThatItTakesUpWaitsForThoseOnTheWay) {
  Stalled job = WithANewLeader(kSidecarsReturn - seconds(4), {3});
  job.QuorumLost({0});
  Decision out = Plan(job.in);
  EXPECT_EQ(out.first_view, nullptr);
  EXPECT_THAT(Reasons(out), testing::Not(testing::Contains("WaitingForProof")));
  EXPECT_TRUE(out.look_again);
  job.Fork();
  EXPECT_EQ(Plan(job.in).first_view, nullptr);
  job.in.now += seconds(4);
  out = Plan(job.in);
  ASSERT_NE(out.first_view, nullptr);
  EXPECT_THAT(PodsOf(out.first_view), ElementsAre("digits-worker-0"));
}

}  // namespace
}  // namespace ringmaster::planner
