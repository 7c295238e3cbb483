// The acceptor of one view's successor: answers prepare and propose, and resigns (rules 4, 5, 7).
//
// A proposal that may be accepted waits here until the local workers have stopped using the view
// for good: after an acceptance no step of the view may complete. Owned by Succession; used by the
// member's thread only.
#pragma once

#include <optional>
#include <string>

#include "common/membership/ballot.h"
#include "common/membership/clause.h"
#include "common/membership/learner.h"
#include "common/membership/local_workers.h"
#include "common/membership/member_state.h"
#include "common/membership/outbox.h"
#include "common/membership/peer_status.h"
#include "common/membership/rank_status.h"

namespace ringmaster::membership {

class Acceptor {
 public:
  struct Parts {
    MemberState* state;
    PeerStatus* peers;
    const RankStatus* ranks;
    LocalWorkers* workers;
    Learner* learner;
    Outbox* outbox;
  };
  Acceptor(const Parts& parts, ClauseSet without) : parts_(parts), without_(without) {}

  void EnterView() { pending_.reset(); }

  // True: this member has promised the ballot. Otherwise it has answered the sender with the
  // reason.
  bool OnPrepare(const Message& message);
  // True: this member will accept the proposal as soon as the workers have stopped (AcceptPending).
  bool OnPropose(const Ballot& ballot, const ViewPtr& value, const std::string& from);
  // A message about a view that is over: the sender gets the newer one.
  void AnswerOutdated(const Message& message);
  // Accepts the proposal that waits for the workers, if they have stopped. True: it was accepted.
  bool AcceptPending();
  // Accepts a proposal of the own proposer without a wait. `resigning`: the same write stores that
  // this member resigns.
  void Accept(const Ballot& ballot, const ViewPtr& value, bool resigning);

  bool pending() const { return pending_.has_value(); }
  void DropPending() { pending_.reset(); }
  // The newest ballot that asks for this member's acceptance or has it; none() if there is none.
  const Ballot& CurrentBallot() const;
  // True: this member coordinates and has neither accepted a value nor promised a later round, so
  // it may choose the value of round 0, which needs no prepare.
  bool RoundZeroFree() const;
  Message ResignMessage() const;

 private:
  struct Pending {
    Ballot ballot;
    ViewPtr value;
  };
  bool Holds(Clause clause) const { return !without_.Has(clause); }
  void Refuse(const Ballot& ballot, const std::string& to);

  // Constant after construction.
  Parts parts_;
  ClauseSet without_;

  std::optional<Pending> pending_;
};

}  // namespace ringmaster::membership
