// The parts of the simulated world that decide something by themselves.
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/sim/agreement.h"
#include "tests/sim/decided_views.h"
#include "tests/sim/fault_plan.h"
#include "tests/sim/journal.h"
#include "tests/sim/network.h"
#include "tests/sim/script.h"
#include "tests/sim/stream_table.h"

namespace ringmaster::app::sim {
namespace {

ViewPtr ViewAt(Epoch epoch) {
  membership::View view;
  view.epoch = epoch;
  return std::make_shared<const membership::View>(std::move(view));
}

TEST(JournalTest, OnlyTheFirstViolationCountsAndAllAreTraced) {
  std::string trace;
  Journal journal([] { return 2.5; }, &trace);
  EXPECT_FALSE(journal.failed());
  journal.Fail("one");
  journal.Fail("two");
  EXPECT_EQ(journal.outcome().violation, "one");
  EXPECT_EQ(trace, "     2.500 ms  VIOLATION one\n     2.500 ms  VIOLATION two\n");
}

class NetworkTest : public testing::Test {
 protected:
  NetworkTest() {
    for (int pod = 0; pod < 12; ++pod) network_.AddPod();
  }
  // Pods that can't reach pod 0, or the operator.
  int Apart() const {
    int apart = 0;
    for (int pod = 0; pod < 12; ++pod)
      apart += !network_.BothWays(0, pod) || !network_.ReachesOperator(pod) ? 1 : 0;
    return apart;
  }

  Random random_{1};
  Network network_{&random_};
};

TEST_F(NetworkTest, ACutHoldsOneWayOnly) {
  network_.CutOneWay(1, 2);
  EXPECT_FALSE(network_.Connected(1, 2));
  EXPECT_TRUE(network_.Connected(2, 1));
  EXPECT_FALSE(network_.BothWays(2, 1));
  network_.MendOneWay(1, 2);
  EXPECT_TRUE(network_.BothWays(1, 2));
}

TEST_F(NetworkTest, APartitionEndsAtOnceAndCutsRemain) {
  network_.CutOneWay(0, 3);
  network_.Split();
  EXPECT_GT(Apart(), 1);
  network_.Join();
  EXPECT_EQ(Apart(), 1);
}

TEST_F(NetworkTest, AHealedNetworkLosesNothing) {
  network_.Draw();
  network_.CutOneWay(0, 3);
  network_.Split();
  network_.Heal();
  EXPECT_EQ(Apart(), 0);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(network_.Loses());
    EXPECT_LE(network_.MessageDelay(), 4 * kMs);
  }
}

TEST(ScriptTest, AStepHasOneEndAndItIsTheLastOperation) {
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    Random random(seed);
    Script script;
    script.Draw(&random);
    std::size_t end = 0;
    while (!script.EndsStep(end)) ++end;
    EXPECT_TRUE(script.AsksForEnd(end));
    EXPECT_EQ(script.AskedFor(end), 1u);
    EXPECT_EQ(script.AskedFor(0) == 1, !script.AsksForEnd(0)) << seed;
    EXPECT_EQ(script.OperationsUntil(2, 1), 2 * (end + 1) + 1);
    EXPECT_FALSE(script.IsOver(200, 1)) << "it ends between steps";
  }
}

TEST(FaultPlanTest, AFaultThatWaitsIsTakenOnce) {
  FaultPlan plan;
  int struck = 0;
  const std::uint64_t number = plan.Wait([&](int pod) { struck = pod; });
  EXPECT_TRUE(plan.waits());
  if (const auto strike = plan.Take(number)) strike(3);
  EXPECT_EQ(struck, 3);
  EXPECT_FALSE(plan.Take(number));
  EXPECT_FALSE(plan.Take());
}

TEST(FaultPlanTest, TheNextFaultTakesThePlaceOfOneThatWaits) {
  FaultPlan plan;
  int struck = 0;
  const std::uint64_t first = plan.Wait([&](int) { struck = 1; });
  plan.Wait([&](int) { struck = 2; });
  EXPECT_FALSE(plan.Take(first));
  plan.Take()(0);
  EXPECT_EQ(struck, 2);
}

TEST(FaultPlanTest, NothingWaitsOnceFaultsAreOver) {
  FaultPlan plan;
  plan.Wait([](int) {});
  EXPECT_FALSE(plan.healed_at());
  plan.Heal(7);
  EXPECT_FALSE(plan.waits());
  EXPECT_EQ(plan.healed_at(), 7);
}

TEST(StreamTableTest, AStreamIsFoundUntilItIsClosed) {
  StreamTable streams;
  const std::uint64_t first = streams.Open({.pod = 1}), second = streams.Open({.pod = 2});
  EXPECT_NE(first, second);
  EXPECT_EQ(streams.Find(second)->pod, 2);
  EXPECT_EQ(streams.OfPod(1), std::vector<std::uint64_t>{first});
  EXPECT_EQ(streams.Close(first)->pod, 1);
  EXPECT_FALSE(streams.Close(first));
  EXPECT_EQ(streams.Find(first), nullptr);
}

TEST(DecidedViewsTest, AViewIsOverWhenALaterOneIsDecided) {
  DecidedViews views;
  views.Add(ViewAt(5));
  EXPECT_FALSE(views.IsOver(5));
  EXPECT_EQ(views.SuccessorOf(5), std::nullopt);
  views.Add(ViewAt(8));
  views.Add(ViewAt(6));
  EXPECT_TRUE(views.IsOver(5));
  EXPECT_EQ(views.SuccessorOf(5), 6u);
  EXPECT_FALSE(views.IsOver(8));
  EXPECT_EQ(views.newest()->epoch, 8u);
}

TEST(DecidedViewsTest, AnEpochThatWasOnlySpokenOfIsNoSuccessor) {
  DecidedViews views;
  views.Add(ViewAt(5));
  (void)views.Of(6);
  EXPECT_FALSE(views.IsOver(5));
  EXPECT_EQ(views.SuccessorOf(5), std::nullopt);
}

class AgreementTest : public testing::Test {
 protected:
  AgreementTest() {
    Random random(1);
    script_.Draw(&random);
  }
  Given At(std::int64_t step, std::uint64_t model) const {
    Given given;
    given.step = step;
    given.number = script_.OperationsUntil(step, 0);
    given.model = model;
    return given;
  }
  std::string Violation() const { return journal_.outcome().violation; }

  Journal journal_{[] { return 0.0; }, nullptr};
  Script script_;
  Agreement agreement_{&journal_, &script_, [](const Given&) { return nullptr; }};
};

TEST_F(AgreementTest, RanksThatAreEquallyFarHoldTheSameModel) {
  agreement_.CheckSame(At(3, 7), At(3, 7), 5);
  EXPECT_EQ(Violation(), "");
  agreement_.CheckSame(At(3, 7), At(3, 8), 5);
  EXPECT_NE(Violation().find("hold different models"), std::string::npos) << Violation();
}

TEST_F(AgreementTest, WhatAllHaveHadIsNotLost) {
  agreement_.CheckFinal(At(3, 7), 5, true);
  EXPECT_EQ(agreement_.final_number(), At(3, 7).number);
  agreement_.CheckFinal(At(2, 6), 6, false);
  EXPECT_EQ(Violation(), "") << "of a view that does not go on";
  agreement_.CheckFinal(At(2, 6), 6, true);
  EXPECT_EQ(Violation().substr(0, 2), "I5") << Violation();
}

TEST_F(AgreementTest, AStepThatCountedCountsWithTheSameResults) {
  agreement_.CheckFinal(At(3, 7), 5, true);
  agreement_.CheckFinal(At(3, 8), 5, true);
  EXPECT_EQ(Violation().substr(0, 2), "I4") << Violation();
}

TEST_F(AgreementTest, ALineageMayBeginBehindWhatCounted) {
  agreement_.CheckFinal(At(3, 7), 5, true);
  EXPECT_FALSE(agreement_.Reduced(4, 99, "made here"));
  EXPECT_TRUE(agreement_.Reduced(4, 99, "made here"));
  agreement_.BeginLineage(At(1, 0).number);
  agreement_.CheckFinal(At(1, 4), 6, true);
  EXPECT_EQ(Violation(), "");
  EXPECT_FALSE(agreement_.Reduced(4, 98, "made here"));
}

}  // namespace
}  // namespace ringmaster::app::sim
