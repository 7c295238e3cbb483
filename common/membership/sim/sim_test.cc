// Runs 50,000 schedules and checks that they cover enough. Under sanitizers
// (RINGMASTER_TEST_ROUNDS=small) it runs a thousand, which look for memory errors and not for rare
// orders of events.
#include <gtest/gtest.h>

#include <cstdio>

#include "common/membership/sim/simulation.h"
#include "tests/support/rounds.h"

namespace ringmaster::membership::sim {
namespace {

constexpr std::uint64_t kFirstSeed = 1'000'000;

TEST(SimulationTest, NoScheduleBreaksAnInvariantOrStopsTraining) {
  const auto schedules = support::Schedules(50'000, 300);
  Coverage coverage;
  for (std::uint64_t i = 0; i < schedules; ++i) {
    Options options;
    options.seed = kFirstSeed + i;
    Outcome outcome = RunSchedule(options);
    coverage.Add(outcome.coverage);
    ASSERT_EQ(outcome.violation, "")
        << "again: membership_sim --seed " << options.seed << " --schedules 1 --trace\n"
        << Explain(options, outcome.violation);
  }
  std::printf("%s", coverage.Text().c_str());
  // A run that covers less than this would no longer find what it is for.
  for (int i = 0; i < static_cast<int>(Fault::kCount); ++i) {
    EXPECT_GT(coverage.faults[i], schedules / 50) << FaultName(static_cast<Fault>(i));
  }
  EXPECT_GT(coverage.lost, schedules);
  EXPECT_GT(coverage.repeated, schedules);
  EXPECT_GT(coverage.steps, schedules * 10);
  EXPECT_GT(coverage.campaigns, schedules / 4);
  EXPECT_GT(coverage.refused, schedules / 50);
  EXPECT_GT(coverage.by_majority, schedules / 2);
  EXPECT_GT(coverage.by_record, schedules / 20);
  EXPECT_GT(coverage.by_all, schedules / 50);
  EXPECT_GT(coverage.planned_views, schedules / 4);
  EXPECT_GT(coverage.held_views, schedules / 50);
  EXPECT_GT(coverage.record_conflicts, schedules / 50);
  EXPECT_GT(coverage.recoveries, schedules / 10);
  EXPECT_GT(coverage.recovered_views, schedules / 20);
  EXPECT_GT(coverage.restarts, schedules / 200);
  EXPECT_GT(coverage.recovery_waits, schedules / 100);
  EXPECT_GT(coverage.steps_lost, schedules / 200);
  EXPECT_GT(coverage.five_and_more, schedules / 5);
  EXPECT_GE(coverage.largest, schedules < 10'000 ? 50 : 60);  // a thousand schedules reach 59
  // Rightly blocked schedules say nothing about liveness: they must stay the exception.
  EXPECT_LT(coverage.blocked, schedules / 8);
}

TEST(SimulationTest, TheSameSeedGivesTheSameSchedule) {
  std::string first, second;
  Options options;
  options.seed = 7;
  options.trace = &first;
  RunSchedule(options);
  options.trace = &second;
  RunSchedule(options);
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace ringmaster::membership::sim
