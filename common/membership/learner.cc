#include "common/membership/learner.h"

namespace ringmaster::membership {

Learner::Proposal& Learner::Find(const Ballot& ballot, const ViewPtr& value) {
  for (Proposal& proposal : proposals_) {
    // A ballot has one value, unless a test has taken out the clause that says so.
    const bool same = !without_.Has(Clause::kRoundZeroOnce) || proposal.value == value;
    if (proposal.ballot == ballot && same) return proposal;
  }
  proposals_.push_back({ballot, value, {}});
  return proposals_.back();
}

std::optional<Learner::Decision> Learner::FindDecision(
    const View& view, const std::vector<const Resignation*>& resigned) const {
  for (const Proposal& proposal : proposals_) {
    const Quorum quorum = FindQuorum(view, proposal.ballot, proposal.votes, resigned, without_);
    if (quorum != Quorum::kNone) return Decision{proposal.value, quorum};
  }
  return std::nullopt;
}

}  // namespace ringmaster::membership
