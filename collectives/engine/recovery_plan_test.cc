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

}  // namespace
}  // namespace ringmaster::engine
