// The voters of a view, and whether their votes are a quorum (membership rules 3 and 6). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/membership/ballot.h"
#include "common/membership/clause.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

// A set of voters of one view by index: its pods, then the record.
class VoterSet {
 public:
  void Add(std::size_t voter);
  bool Has(std::size_t voter) const;

 private:
  std::vector<std::uint64_t> words_;
};

// A pod's irrevocable statement that it takes no more part in a view (rule 7).
struct Resignation {
  Ballot promised;
  Ballot accepted;
  ViewPtr value;  // that it accepted; null: none
};

enum class Quorum : std::uint8_t {
  kNone,
  kMajority,  // 6a, by pods alone
  kRecord,    // 6a, with R's vote
  kAll,       // 6b: every pod accepted or has resigned
};

std::size_t RecordIndex(const View& view);
bool RecordHasVote(const View& view, ClauseSet without = {});
// The least number of votes that is more than half.
std::size_t MajorityOf(const View& view, ClauseSet without = {});

// `yes`: the voters that accepted (or promised) this very ballot. `resigned` has one entry for each
// pod, null where it has not resigned.
Quorum FindQuorum(const View& view, const Ballot& ballot, const VoterSet& yes,
                  const std::vector<const Resignation*>& resigned, ClauseSet without = {});

}  // namespace ringmaster::membership
