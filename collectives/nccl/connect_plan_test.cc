#include "collectives/nccl/connect_plan.h"

#include <gmock/gmock.h>

#include "collectives/nccl/nccl_types.h"

namespace ringmaster::nccl {
namespace {

using How = ConnectPlan::How;
using ::testing::HasSubstr;

constexpr uint64_t kOrigin = 77;

// What a rank tells that had a communicator of four.
ConnectFacts Had(int rank, int version = kFirstRevoke) {
  return {.version = version, .rank = rank, .size = 4, .origin = kOrigin};
}
ConnectFacts HadNone(int version = kFirstRevoke) { return {.version = version}; }

ConnectPlan PlanOf(std::vector<ConnectFacts> by_rank) { return PlanConnect(by_rank); }

TEST(ConnectPlanTest, TheFirstCommunicatorIsANewOne) {
  EXPECT_EQ(PlanOf({HadNone(), HadNone()}).how, How::kInit);
}

TEST(ConnectPlanTest, SurvivorsShrinkWhatTheyHave) {
  const ConnectPlan plan = PlanOf({Had(0), Had(2), Had(3)});
  EXPECT_EQ(plan.how, How::kShrink);
  EXPECT_EQ(plan.excluded, std::vector<int>{1});
  EXPECT_FALSE(plan.revoke);
}

TEST(ConnectPlanTest, WhatAFaultHasLeftIsEndedFirstAndWhatWasRevokedHasEnded) {
  EXPECT_FALSE(PlanOf({Had(0), Had(2)}).abort) << "who is gone has left by plan";
  ConnectFacts after_a_fault = Had(2);
  after_a_fault.faults = 1;
  EXPECT_TRUE(PlanOf({Had(0), after_a_fault}).abort) << "all give the same flag";
  after_a_fault.revoked = 1;
  EXPECT_FALSE(PlanOf({Had(0), after_a_fault}).abort);
}

TEST(ConnectPlanTest, WhatOneHasRevokedAllRevoke) {
  ConnectFacts revoked = Had(3);
  revoked.revoked = 1;
  EXPECT_TRUE(PlanOf({Had(0), Had(1), revoked}).revoke);
}

TEST(ConnectPlanTest, AnEarlierNcclMakesANewOne) {
  EXPECT_EQ(PlanOf({Had(0, 22605), Had(2, 22605)}).how, How::kInit);
  EXPECT_EQ(PlanOf({Had(0, kFirstShrink), Had(2, kFirstShrink)}).how, How::kShrink);
}

TEST(ConnectPlanTest, AJoinerOrOneThatGaveItsUpMeansANewOne) {
  EXPECT_EQ(PlanOf({Had(0), Had(1), HadNone()}).how, How::kInit);
  ConnectFacts other = Had(1);
  other.origin = kOrigin + 1;
  EXPECT_EQ(PlanOf({Had(0), other}).how, How::kInit);
}

TEST(ConnectPlanTest, WhereTheViewHasAnotherOrderThanNcclANewOneIsMade) {
  EXPECT_EQ(PlanOf({Had(0), Had(3), Had(2)}).how, How::kInit);
}

TEST(ConnectPlanTest, TheSameWorkersKeepWhatTheyHave) {
  EXPECT_EQ(PlanOf({Had(0), Had(1), Had(2), Had(3)}).how, How::kKeep);
  ConnectFacts revoked = Had(2);
  revoked.revoked = 1;
  EXPECT_EQ(PlanOf({Had(0), Had(1), revoked, Had(3)}).how, How::kInit);
}

TEST(ConnectPlanTest, WhatOneRankHasLaunchedAndAnotherHasNotIsNeverKept) {
  ConnectFacts ahead = Had(2);
  ahead.launched = 1;
  EXPECT_EQ(PlanOf({Had(0), Had(1), ahead, Had(3)}).how, How::kInit);
}

TEST(ConnectPlanTest, WithoutNcclOnOneRankAllUseTheHost) {
  const ConnectPlan plan = PlanOf({Had(0), HadNone(0), Had(2)});
  EXPECT_EQ(plan.how, How::kHost);
  EXPECT_THAT(plan.why, HasSubstr("rank 1"));
}

TEST(ConnectPlanTest, WhereARankHasFailedTwiceAllUseTheHost) {
  ConnectFacts failed = HadNone();
  failed.failed = 1;
  EXPECT_EQ(PlanOf({HadNone(), failed}).how, How::kInit);
  failed.failed = 2;
  const ConnectPlan plan = PlanOf({HadNone(), failed});
  EXPECT_EQ(plan.how, How::kHost);
  EXPECT_THAT(plan.why, HasSubstr("rank 1 had no NCCL communicator in 2 views"));
}

// A newcomer from another image must not end the job.
TEST(ConnectPlanTest, WithDifferentVersionsAllUseTheHost) {
  const ConnectPlan plan = PlanOf({Had(0, 22703), Had(1, 22703), HadNone(23203)});
  EXPECT_EQ(plan.how, How::kHost);
  EXPECT_THAT(plan.why, HasSubstr("2.27.3 on rank 0 and 2.32.3 on rank 2"));
  EXPECT_EQ(PlanOf({HadNone(22703), HadNone(22705)}).how, How::kHost);
}

TEST(ConnectPlanTest, OriginTellsCommunicatorsApart) {
  const char id[] = "an id";
  const uint64_t made = OriginOf(id);
  EXPECT_NE(OriginOf(made, std::vector<int>{1}), OriginOf(made, std::vector<int>{2}));
  EXPECT_NE(OriginOf(made, std::vector<int>{1}), made);
}

}  // namespace
}  // namespace ringmaster::nccl
