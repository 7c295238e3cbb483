// Takes each clause of the rules out and checks that the simulator finds what breaks, which shows
// that the simulator can fail. The table with the reasons is ../clauses.md.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "common/membership/sim/simulation.h"

namespace ringmaster::membership::sim {
namespace {

constexpr std::uint64_t kFirstSeed = 1;

struct Row {
  Clause clause;
  Profile profile;     // the schedules that aim at it
  const char* breaks;  // beginning of the violation
  std::uint64_t schedules;
};

// `schedules` is about ten times what it took to find the violation when the row was written.
constexpr Row kTable[] = {
    {Clause::kMajority, Profile::kContended, "I2", 1000},
    {Clause::kResignationNoVote, Profile::kResigning, "I2", 20000},
    {Clause::kResignationPromise, Profile::kContended, "I2", 60000},
    {Clause::kAdoptAccepted, Profile::kContended, "I2", 2000},
    {Clause::kAdoptResigned, Profile::kResigning, "I2", 5000},
    {Clause::kRoundZeroOnce, Profile::kContended, "I2", 20000},
    {Clause::kPrepareFirst, Profile::kContended, "I2", 3000},
    {Clause::kCurrentViewOnly, Profile::kContended, "I2", 1000},
    {Clause::kResignedSilent, Profile::kResigning, "I2", 50000},
    {Clause::kPromiseKept, Profile::kContended, "I2", 1000},
    {Clause::kStopBeforeAccept, Profile::kResigning, "I3", 20000},
    {Clause::kStoreBeforeAnswer, Profile::kForgetful, "I2", 20000},
    {Clause::kLostFileJoins, Profile::kForgetful, "I2", 20000},
    {Clause::kIncarnationMatches, Profile::kForgetful, "I2", 20000},
    {Clause::kInstallNewerOnly, Profile::kMixed, "I1", 1000},
    {Clause::kRecordVotes, Profile::kContended, "liveness", 1000},
    {Clause::kRecordSwaps, Profile::kContended, "I2", 5000},
    {Clause::kRecordRefusesOlder, Profile::kContended, "I2", 1000},
    {Clause::kFaultAdmitsNobody, Profile::kPlanned, "torn", 1000},
    {Clause::kBoundaryFirst, Profile::kPlanned, "torn", 1000},
    {Clause::kHolderStays, Profile::kPlanned, "I5", 5000},
    {Clause::kReportAllOrProof, Profile::kQuorumRecovered, "I", 30000},
    {Clause::kFreshPods, Profile::kQuorumRecovered, "liveness", 5000},
    {Clause::kStopBeforeReport, Profile::kQuorumRecovered, "I3", 60000},
    {Clause::kLineagePromise, Profile::kQuorumRecovered, "I5", 150000},
    {Clause::kHighestView, Profile::kQuorumRecovered, "I5", 2000},
    {Clause::kResignedExcluded, Profile::kQuorumRecovered, "liveness", 2000},
    {Clause::kRecordLineageSwap, Profile::kQuorumRecovered, "I2", 1000},
    {Clause::kLineageWritten, Profile::kQuorumRecovered, "I2", 5000},
};

class ClauseTest : public testing::TestWithParam<Row> {};

TEST_P(ClauseTest, ItsRemovalIsFound) {
  const Row& row = GetParam();
  for (std::uint64_t i = 0; i < row.schedules; ++i) {
    Options options;
    options.seed = kFirstSeed + i;
    options.profile = row.profile;
    options.without.Add(row.clause);
    Outcome outcome = RunSchedule(options);
    if (!outcome.violation.starts_with(row.breaks)) continue;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(options.seed),
                outcome.violation.c_str());
    return;
  }
  FAIL() << ClauseName(row.clause) << " was taken out and " << row.schedules << " schedules of "
         << ProfileName(row.profile) << " found no violation of " << row.breaks;
}

INSTANTIATE_TEST_SUITE_P(All, ClauseTest, testing::ValuesIn(kTable), [](const auto& info) {
  return std::string(ClauseName(info.param.clause));
});

}  // namespace
}  // namespace ringmaster::membership::sim
