// The learner of one view's successor: counts which voters have accepted which proposal
// (rule 6).
//
// Owned by Succession; used by the member's thread only.
#pragma once

#include <optional>
#include <vector>

#include "common/membership/ballot.h"
#include "common/membership/clause.h"
#include "common/membership/quorum.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

class Learner {
 public:
  explicit Learner(ClauseSet without) : without_(without) {}

  struct Decision {
    ViewPtr value;
    Quorum quorum = Quorum::kNone;
  };

  void EnterView() { proposals_.clear(); }
  void AddVote(const Ballot& ballot, const ViewPtr& value, std::size_t voter) {
    Find(ballot, value).votes.Add(voter);
  }
  // The votes for this proposal. Asking for them makes the learner know the proposal, because
  // resignations alone may decide it, before any member has accepted it.
  const VoterSet& Votes(const Ballot& ballot, const ViewPtr& value) {
    return Find(ballot, value).votes;
  }
  // The first proposal for which there is a quorum.
  std::optional<Decision> FindDecision(const View& view,
                                       const std::vector<const Resignation*>& resigned) const;

 private:
  struct Proposal {
    Ballot ballot;
    ViewPtr value;
    VoterSet votes;
  };
  Proposal& Find(const Ballot& ballot, const ViewPtr& value);

  ClauseSet without_;
  std::vector<Proposal> proposals_;
};

}  // namespace ringmaster::membership
