#include <gtest/gtest.h>

#include "collectives/engine/recovery.h"

namespace ringmaster::engine {
namespace {

TEST(RecoveryPlanTest, AllPackUpToTheLeastThatARankWould) {
  std::vector<Holding> by_rank(3);
  by_rank[0].fusion_bytes = 64;
  by_rank[1].fusion_bytes = 16;
  by_rank[2].fusion_bytes = 32;
  by_rank[1].has_state = false;
  for (Holding& holding : by_rank) {
    const auto bytes = WriteHolding(holding);
    holding = {};
    ASSERT_TRUE(ReadHolding(bytes, &holding));
  }
  RecoveryPlan plan;
  ASSERT_TRUE(PlanRecovery(by_rank, &plan).ok());
  EXPECT_EQ(plan.fusion_bytes, 16u) << "a joiner's, too";
}

// Three ranks in step 4, all with state, whose ranks are those of view 7.
std::vector<Holding> InOneStep() {
  std::vector<Holding> by_rank(3);
  for (Holding& holding : by_rank) {
    holding.step = 4;
    holding.ranks_epoch = 7;
  }
  return by_rank;
}

int NamesRanks(const std::vector<Holding>& by_rank) {
  RecoveryPlan plan;
  EXPECT_TRUE(PlanRecovery(by_rank, &plan).ok());
  return plan.names_ranks;
}

TEST(RecoveryPlanTest, WhereAllAreInTheStepNobodyNamesItsRanks) {
  EXPECT_EQ(NamesRanks(InOneStep()), -1);
}

TEST(RecoveryPlanTest, WhereAllStandBeforeTheStepItBeginsInThisView) {
  auto by_rank = InOneStep();
  for (Holding& holding : by_rank) holding.at_boundary = true;
  by_rank[1].ranks_epoch = 6;
  EXPECT_EQ(NamesRanks(by_rank), -1);
}

TEST(RecoveryPlanTest, WhoIsInTheStepNamesItsRanksToThoseThatAreNot) {
  auto by_rank = InOneStep();
  by_rank[0].at_boundary = true;
  EXPECT_EQ(NamesRanks(by_rank), 1) << "one that stands there knows them no longer for certain";
  by_rank[0].at_boundary = false;
  by_rank[0].step = 3;
  EXPECT_EQ(NamesRanks(by_rank), 1) << "it is handed the step's end over";
  by_rank[1].has_state = false;
  EXPECT_EQ(NamesRanks(by_rank), 2);
}

TEST(RecoveryPlanTest, WhoHasExecutedMoreOfTheStepNamesItsRanks) {
  auto by_rank = InOneStep();
  by_rank[1].ranks_epoch = 9;
  EXPECT_EQ(NamesRanks(by_rank), 1);
}

TEST(RecoveryPlanTest, WithALibraryThatKnowsNoRanksOfStepsNobodyNamesThem) {
  auto by_rank = InOneStep();
  by_rank[0].at_boundary = true;
  by_rank[2].ranks_epoch.reset();
  const auto bytes = WriteHolding(by_rank[2]);
  by_rank[2] = {};
  ASSERT_TRUE(ReadHolding(bytes, &by_rank[2]));
  EXPECT_FALSE(by_rank[2].ranks_epoch.has_value());
  RecoveryPlan plan;
  ASSERT_TRUE(PlanRecovery(by_rank, &plan).ok());
  EXPECT_EQ(plan.names_ranks, -1);
  EXPECT_TRUE(plan.ranks_follow_views);
  ASSERT_TRUE(PlanRecovery(InOneStep(), &plan).ok());
  EXPECT_FALSE(plan.ranks_follow_views);
}

}  // namespace
}  // namespace ringmaster::engine
