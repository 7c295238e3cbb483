// What the code between the membership protocol and the sockets promises, clause by clause, each
// with a switch to take it out. FOR TESTS: production code passes the empty set. glue_clauses.md
// says what each removal breaks; sim/clause_test.cc sees the simulator find it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ringmaster::app {

enum class GlueClause : std::uint8_t {
  kAllStopped,     // `stopped` is said when every worker that may use the view has stopped
  kStopSent,       // every worker that may use the view is told to stop
  kUnheardMayUse,  // one that only a stored view names may be using that view
  kGivenCounts,    // so may one that was given a view and has not built it yet
  kAllAtBoundary,  // `boundary` is said when all workers of the view stand at it
  kJoinerIsTold,   // one that comes into a view anew hears that what it held is void
  kBegunWithout,   // one that was to begin the job hears that it has begun without it
  kFenceWaited,  // one whose connection is closed may be using its view until its fence has passed
  kReadyAgain,   // a new stream to the operator is told again whether the pod is ready
  kViewAgain,    // and which view it is in
  kCount,
};

class GlueClauses {
 public:
  constexpr GlueClauses& Add(GlueClause clause) {
    bits_ |= std::uint32_t{1} << static_cast<int>(clause);
    return *this;
  }
  constexpr bool Has(GlueClause clause) const { return bits_ >> static_cast<int>(clause) & 1; }

 private:
  std::uint32_t bits_ = 0;
};

constexpr std::array<std::string_view, static_cast<int>(GlueClause::kCount)> kGlueClauseNames = {
    "AllStopped",   "StopSent",     "UnheardMayUse", "GivenCounts", "AllAtBoundary",
    "JoinerIsTold", "BegunWithout", "FenceWaited",   "ReadyAgain",  "ViewAgain"};

constexpr std::string_view GlueClauseName(GlueClause clause) {
  return kGlueClauseNames[static_cast<std::size_t>(clause)];
}

constexpr std::optional<GlueClause> GlueClauseFromName(std::string_view name) {
  for (std::size_t i = 0; i < kGlueClauseNames.size(); ++i) {
    if (kGlueClauseNames[i] == name) return static_cast<GlueClause>(i);
  }
  return std::nullopt;
}

}  // namespace ringmaster::app
