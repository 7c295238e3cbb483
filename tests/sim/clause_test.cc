// Takes each clause of the glue out, and each step of the recovery, and sees the simulator find
// what breaks: so it is known to be able to fail. The table with the reasons is
// sidecar/app/glue_clauses.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "tests/sim/simulation.h"

namespace ringmaster::app::sim {
namespace {

constexpr std::uint64_t kFirstSeed = 1;

// Runs schedules until one fails as it should. The bound is several times what it took.
void FindViolation(Options options, const std::string& breaks, std::uint64_t schedules,
                   std::uint64_t first_seed = kFirstSeed) {
  std::string others;
  for (std::uint64_t i = 0; i < schedules; ++i) {
    options.seed = first_seed + i;
    const Outcome outcome = RunSchedule(options);
    if (outcome.violation.empty()) continue;
    if (outcome.violation.find(breaks) == std::string::npos) {
      others += "\n" + outcome.violation;
      continue;
    }
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(options.seed),
                outcome.violation.c_str());
    return;
  }
  FAIL() << schedules << " schedules found no violation of '" << breaks
         << "', but these:" << others;
}

struct Row {
  GlueClause clause;
  const char* breaks;  // a part of the violation
  std::uint64_t schedules;
};

constexpr Row kTable[] = {
    {GlueClause::kAllStopped, "may still use", 300},
    {GlueClause::kStopSent, "liveness", 100},
    {GlueClause::kUnheardMayUse, "may still use", 3000},
    {GlueClause::kAllAtBoundary, "torn", 300},
    {GlueClause::kJoinerIsTold, "I4", 3000},
    {GlueClause::kBegunWithout, "I4", 1000},
    {GlueClause::kFenceWaited, "may still use", 500},
    {GlueClause::kReadyAgain, "liveness", 300},
};

class GlueClauseTest : public testing::TestWithParam<Row> {};

TEST_P(GlueClauseTest, ItsRemovalIsFound) {
  Options options;
  options.without.Add(GetParam().clause);
  FindViolation(options, GetParam().breaks, GetParam().schedules);
}

INSTANTIATE_TEST_SUITE_P(All, GlueClauseTest, testing::ValuesIn(kTable), [](const auto& info) {
  return std::string(GlueClauseName(info.param.clause));
});

// ---- The operator's

TEST(OperatorClauseTest, ItIsFoundThatPodsCarryNoFinalizer) {
  Options options;
  options.proof_finalizer = false;
  FindViolation(options, "I3", 2000, 5001);  // one in a thousand has what it takes
}

// Two operators vote: the faults have to aim at it.
TEST(OperatorClauseTest, ItIsFoundThatTheRecordIsWrittenOverWhateverIsThere) {
  Options options;
  options.at_operators = true;
  options.forgets.versions = true;
  FindViolation(options, "I2: two views 1.2", 3000, 3501);
}

// ---- Rule 14: each of these makes another plan of what the ranks hold than the product does.

void FindWrongPlan(void (*spoil)(engine::RecoveryPlan*), std::uint64_t schedules) {
  Options options;
  options.plan_recovery = [spoil](const auto& by_rank, engine::RecoveryPlan* plan) {
    const Status planned = engine::PlanRecovery(by_rank, plan);
    spoil(plan);
    return planned;
  };
  FindViolation(options, "I4", schedules);
}

TEST(RecoveryPlanTest, ItIsFoundThatNothingIsHandedOver) {
  FindWrongPlan([](engine::RecoveryPlan* plan) { plan->handovers.clear(); }, 300);
}

TEST(RecoveryPlanTest, ItIsFoundThatOnlyTheFirstResultIsHandedOver) {
  FindWrongPlan(
      [](engine::RecoveryPlan* plan) {
        if (plan->handovers.size() > 1) plan->handovers.resize(1);
      },
      1000);
}

TEST(RecoveryPlanTest, ItIsFoundThatAConfirmedOperationRunsAgain) {
  FindWrongPlan(
      [](engine::RecoveryPlan* plan) {
        std::erase_if(plan->handovers, [](const auto& handover) {
          return handover.result.response.needs_confirmation();
        });
      },
      1000);
}

TEST(RecoveryPlanTest, ItIsFoundThatAJoinerGetsTheStateOfOneThatIsBehind) {
  FindWrongPlan(
      [](engine::RecoveryPlan* plan) {
        if (!plan->joiners.empty() && plan->next_number > 0) --plan->next_number;
      },
      300);
}

}  // namespace
}  // namespace ringmaster::app::sim
