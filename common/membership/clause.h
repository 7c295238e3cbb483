// The clauses that make the protocol safe, each with a switch to take it out. The switches are FOR
// TESTS: production code passes the empty set. clauses.md says what each removal breaks, and
// sim/clause_test.cc checks that the simulator finds it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ringmaster::membership {

enum class Clause : std::uint8_t {
  kMajority,            // 6a: more than half of the voters, not half
  kResignationNoVote,   // 6a: resignations count for nothing
  kResignationPromise,  // 6b: each resignation shows a promise not above the ballot
  kOneAccepted,         // 6b: at least one pod accepted
  kAdoptAccepted,       // 4: propose the value of the highest ballot that a promise reports
  kAdoptResigned,       // 4: ... or that a resignation reports
  kRoundZeroOnce,       // 4: one value in round 0
  kPrepareFirst,        // 4: a later round first collects promises
  kCurrentViewOnly,     // 5: answers only for its current view
  kResignedSilent,      // 5: answers no more once it has resigned
  kPromiseKept,         // 5: accepts nothing below its promise
  kStopBeforeAccept,    // 5: the workers are stopped before it accepts
  kStoreBeforeAnswer,   // 1: stored before the answer leaves
  kLostFileJoins,       // 1: a lost file makes a new incarnation, which comes as a joiner
  kIncarnationMatches,  // 1: a view is installed only by the incarnation that it lists
  kInstallNewerOnly,    // 6: a view is installed only if it is newer than all seen
  kRecordVotes,         // 3: R votes where the number of pods is even
  kRecordSwaps,         // 8: R is written by compare-and-swap
  kRecordRefusesOlder,  // 8: R refuses views older than its own
  kFaultAdmitsNobody,   // 12: a view made for a fault admits nobody
  kBoundaryFirst,       // 12: a planned change is proposed when all stand at the boundary
  kHolderStays,         // 13: a view keeps a worker that holds the state
  kReportAllOrProof,    // 9: every pod that is not proven dead has reported
  kFreshPods,           // 9: ... of the pods that there are after the last report
  kStopBeforeReport,    // 9: the workers have stopped before the report leaves
  kLineagePromise,      // 9, 5: a pod that has reported takes part in no lower lineage
  kHighestView,         // 9: the highest reported view that a holder of the state is in
  kResignedExcluded,    // 9: a pod that has resigned is no member
  kRecordLineageSwap,   // 9: R is moved to the new lineage by compare-and-swap
  kLineageWritten,      // 9: each lineage is written down apart from R, the next is above it
  kCount,
};

class ClauseSet {
 public:
  constexpr ClauseSet() = default;
  constexpr ClauseSet& Add(Clause clause) {
    bits_ |= std::uint32_t{1} << static_cast<int>(clause);
    return *this;
  }
  constexpr bool Has(Clause clause) const { return bits_ >> static_cast<int>(clause) & 1; }
  constexpr bool empty() const { return bits_ == 0; }

 private:
  std::uint32_t bits_ = 0;
};

std::string_view ClauseName(Clause clause);  // "Majority"
std::optional<Clause> ClauseFromName(std::string_view name);

}  // namespace ringmaster::membership
