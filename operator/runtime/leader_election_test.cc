#include "operator/runtime/leader_election.h"

#include <gtest/gtest.h>

namespace ringmaster::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Step = Election::Step;

class ElectionTest : public testing::Test {
 protected:
  // A lease that another replica has renewed for the n-th time.
  static LeaseFacts Others(int renewal, int duration = 15) {
    return {.holder = "other",
            .duration_seconds = duration,
            .acquired = "t0",
            .renewed = "t" + std::to_string(renewal),
            .transitions = 3,
            .resource_version = std::to_string(100 + renewal)};
  }
  static LeaseFacts Accepted(LeaseFacts claim) {
    claim.resource_version = "200";
    return claim;
  }
  void Advance(milliseconds duration) { now_ += duration; }

  Election::Clock::time_point now_{seconds(1000)};
  Election election_{{.identity = "me"}};
};

TEST_F(ElectionTest, NothingIsDecidedBeforeTheLeaseWasSeen) {
  EXPECT_EQ(election_.Next(now_), Step::kLook);
  EXPECT_FALSE(election_.leading());
}

TEST_F(ElectionTest, WhereThereIsNoLeaseItIsMade) {
  election_.Saw(std::nullopt, now_);
  EXPECT_EQ(election_.Next(now_), Step::kCreate);
  const LeaseFacts claim = election_.Claim("wall");
  EXPECT_EQ(claim.holder, "me");
  EXPECT_EQ(claim.duration_seconds, 15);
  EXPECT_EQ(claim.acquired, "wall");
  EXPECT_EQ(claim.transitions, 0);
  EXPECT_FALSE(election_.leading()) << "not before the API server has taken it";
  election_.Wrote(Accepted(claim), now_);
  EXPECT_TRUE(election_.leading());
  EXPECT_EQ(election_.Next(now_), Step::kRenew);
}

TEST_F(ElectionTest, ALeaseIsOverWhenWeHaveSeenNoChangeForItsDuration) {
  election_.Saw(Others(1), now_);
  Advance(seconds(14));
  election_.Saw(Others(1), now_);
  EXPECT_EQ(election_.Next(now_), Step::kWait);
  election_.Saw(Others(2), now_);
  Advance(milliseconds(14'999));
  EXPECT_EQ(election_.Next(now_), Step::kWait) << "renewed meanwhile: counted anew";
  Advance(milliseconds(1));
  EXPECT_EQ(election_.Next(now_), Step::kTake);
  const LeaseFacts claim = election_.Claim("wall");
  EXPECT_EQ(claim.transitions, 4);
  EXPECT_EQ(claim.acquired, "wall");
  EXPECT_EQ(claim.resource_version, "102") << "only if nobody else was quicker";
}

TEST_F(ElectionTest, ItsHoldersDurationCounts) {
  election_.Saw(Others(1, 60), now_);
  Advance(seconds(59));
  EXPECT_EQ(election_.Next(now_), Step::kWait);
  Advance(seconds(1));
  EXPECT_EQ(election_.Next(now_), Step::kTake);
}

TEST_F(ElectionTest, AnOldTimeInTheLeaseMeansNothing) {
  LeaseFacts lease = Others(1);
  lease.renewed = "1970-01-01T00:00:00.000000Z";
  election_.Saw(lease, now_);
  EXPECT_EQ(election_.Next(now_), Step::kWait) << "its holder's clock may be wrong";
}

TEST_F(ElectionTest, AnAnnotationIsNoSignOfLife) {
  election_.Saw(Others(1), now_);
  Advance(seconds(10));
  LeaseFacts annotated = Others(1);
  annotated.resource_version = "150";
  election_.Saw(annotated, now_);
  Advance(seconds(5));
  EXPECT_EQ(election_.Next(now_), Step::kTake);
  EXPECT_EQ(election_.Claim("wall").resource_version, "150");
}

TEST_F(ElectionTest, AReleasedLeaseIsTakenAtOnce) {
  LeaseFacts released = Others(1);
  released.holder.clear();
  released.duration_seconds = 1;
  election_.Saw(released, now_);
  EXPECT_EQ(election_.Next(now_), Step::kTake);
}

TEST_F(ElectionTest, AProcessThatStartsAgainGoesOnWithItsOwnLease) {
  LeaseFacts own = Others(1);
  own.holder = "me";
  election_.Saw(own, now_);
  EXPECT_FALSE(election_.leading());
  EXPECT_EQ(election_.Next(now_), Step::kTake);
  EXPECT_EQ(election_.Claim("wall").transitions, 3);
}

TEST_F(ElectionTest, ALeaderRenewsAndItsDeadlineCountsFromWhenItAsked) {
  election_.Saw(std::nullopt, now_);
  election_.Wrote(Accepted(election_.Claim("w1")), now_);
  EXPECT_EQ(election_.deadline(), now_ + seconds(10));
  Advance(seconds(2));
  const auto asked = now_;
  Advance(seconds(4));  // the answer took long
  const LeaseFacts claim = election_.Claim("w2");
  EXPECT_EQ(claim.acquired, "w1");
  EXPECT_EQ(claim.renewed, "w2");
  EXPECT_EQ(claim.resource_version, "200");
  EXPECT_EQ(claim.transitions, 0);
  election_.Wrote(Accepted(claim), asked);
  EXPECT_EQ(election_.deadline(), asked + seconds(10));
}

TEST_F(ElectionTest, ALeaderThatSeesAnotherHolderLeadsNoMore) {
  election_.Saw(std::nullopt, now_);
  election_.Wrote(Accepted(election_.Claim("w")), now_);
  election_.Lost();
  EXPECT_TRUE(election_.leading()) << "an answer that got lost says nothing";
  EXPECT_EQ(election_.Next(now_), Step::kLook);
  election_.Saw(Others(1), now_);
  EXPECT_FALSE(election_.leading());
  EXPECT_EQ(election_.Next(now_), Step::kWait);
}

TEST_F(ElectionTest, WhatIsReleasedNamesNobody) {
  election_.Saw(std::nullopt, now_);
  election_.Wrote(Accepted(election_.Claim("w")), now_);
  const LeaseFacts release = election_.Release("end");
  EXPECT_EQ(release.holder, "");
  EXPECT_EQ(release.duration_seconds, 1);
  EXPECT_EQ(release.resource_version, "200");
}

TEST(Lease, IsReadAndWrittenAsTheApiHasIt) {
  const LeaseFacts facts{.holder = "me",
                         .duration_seconds = 15,
                         .acquired = "a",
                         .renewed = "r",
                         .transitions = 2,
                         .resource_version = "7"};
  EXPECT_EQ(ReadLease(WriteLease(facts, "ns", "name")), facts);
  EXPECT_EQ(ReadLease(kube::Json::parse(R"({"spec": {"holderIdentity": 3}})")), LeaseFacts{});
  EXPECT_EQ(ReadLease(kube::Json::parse(R"({"metadata": 1, "spec": null})")), LeaseFacts{});
}

}  // namespace
}  // namespace ringmaster::runtime
