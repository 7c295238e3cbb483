#include "collectives/bench/cost_model.h"

#include <gtest/gtest.h>

namespace ringmaster::bench {
namespace {

TEST(CostModelTest, ALineIsFoundAgain) {
  std::vector<Point> points;
  for (double bytes : {1e3, 1e4, 1e5, 1e6, 1e7}) points.push_back({bytes, 2e-5 + bytes * 3e-10});
  const Line line = FitLine(points);
  EXPECT_NEAR(line.fixed, 2e-5, 1e-10);
  EXPECT_NEAR(line.per_byte, 3e-10, 1e-15);
}

TEST(CostModelTest, SmallMessagesCountAsMuchAsLargeOnes) {
  // The large message is 10 % off. That must not make the small ones negative or many times too
  // long.
  const Line line = FitLine({{1e3, 1e-5}, {2e3, 1e-5}, {1e8, 1.1e-1}});
  EXPECT_NEAR(line.fixed, 1e-5, 2e-6);
}

TEST(CostModelTest, NeitherPartIsEverNegative) {
  const Line falls = FitLine({{1e3, 2e-5}, {1e6, 1e-5}});
  EXPECT_EQ(falls.per_byte, 0);
  EXPECT_GT(falls.fixed, 0);
  const Line steep = FitLine({{1e3, 1e-6}, {1e4, 2e-5}});
  EXPECT_GE(steep.fixed, 0);
  EXPECT_GT(steep.per_byte, 0);
}

TEST(CostModelTest, TheLargestSizeIsMetWhereItIsSlower) {
  const std::vector<Point> points = {{1e3, 1e-5}, {1e5, 2e-5}, {1e6, 1.1e-4}, {1e8, 3e-2}};
  const Line line = FitLargest(points);
  EXPECT_NEAR(line.fixed + 1e8 * line.per_byte, 3e-2, 1e-9);
  EXPECT_NEAR(line.fixed, 1e-5, 5e-6);
}

TEST(CostModelTest, OneSizeAloneIsAllFixed) {
  const Line line = FitLine({{64, 1e-5}, {64, 3e-5}});
  EXPECT_EQ(line.per_byte, 0);
  EXPECT_GT(line.fixed, 1e-5);
}

TEST(CostModelTest, ParametersOfARingAreFoundAgain) {
  const CostModel truth{.latency = 5e-6, .per_byte = 2e-10, .per_reduced_byte = 1e-10};
  const int p = 4;
  const double share = 0.75;
  const CostModel model = FitModel(
      p, {2 * (p - 1) * truth.latency, share * (2 * truth.per_byte + truth.per_reduced_byte)},
      truth.per_reduced_byte);
  EXPECT_NEAR(model.latency, truth.latency, 1e-12);
  EXPECT_NEAR(model.per_byte, truth.per_byte, 1e-16);
  EXPECT_NEAR(model.per_reduced_byte, truth.per_reduced_byte, 1e-16);
}

TEST(CostModelTest, AddingUpTakesNoMoreThanTheWholeAllreduce) {
  const CostModel model = FitModel(2, {1e-5, 1e-10}, 1e-9);
  EXPECT_EQ(model.per_byte, 0);
  EXPECT_NEAR(model.per_reduced_byte, 2e-10, 1e-16);
}

TEST(CostModelTest, ARingScalesAndAServerDoesNot) {
  const CostModel model{.latency = 5e-6, .per_byte = 1e-10, .per_reduced_byte = 1e-10};
  const double bytes = 1e8;
  EXPECT_LT(model.Ring(64, bytes), 2.1 * model.Ring(2, bytes));
  EXPECT_GT(model.ParameterServers(64, 1, bytes), 30 * model.ParameterServers(2, 1, bytes));
  EXPECT_NEAR(model.ParameterServers(64, 32, bytes), model.ParameterServers(2, 1, bytes), 1e-9);
}

TEST(CostModelTest, EfficiencyIsTheShareOfComputing) {
  EXPECT_NEAR(Efficiency(0.3, 0.1), 0.75, 1e-12);
}

}  // namespace
}  // namespace ringmaster::bench
