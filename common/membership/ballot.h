// Ballots order the attempts to decide one view's successor (membership rule 4).
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace ringmaster::membership {

// Round 0 belongs to the view's coordinator, which may propose one value in it without a prepare.
// The default is below every real ballot.
struct Ballot {
  std::int64_t round = -1;
  std::string pod;

  bool none() const { return round < 0; }
  auto operator<=>(const Ballot&) const = default;
};

std::string BallotText(const Ballot& ballot);

}  // namespace ringmaster::membership
