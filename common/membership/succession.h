// Decides the successor of the current view by single-decree Paxos among its pods. A member is
// acceptor, proposer and learner in one. Begins anew with each view.
//
// Owned by MemberImpl; used by the member's thread only.
#pragma once

#include <optional>
#include <string>

#include "common/membership/acceptor.h"
#include "common/membership/campaign_turn.h"
#include "common/membership/learner.h"
#include "common/membership/member_counters.h"
#include "common/membership/proposer.h"

namespace ringmaster::membership {

class Succession {
 public:
  struct Parts {
    MemberState* state;
    PeerStatus* peers;
    RankStatus* ranks;
    LocalWorkers* workers;
    const SuccessorSource* source;
    Outbox* outbox;
  };
  Succession(const Parts& parts, const Config& config);

  void EnterView();

  // A message about the current view from pod `from`. Kinds that are not of Paxos are ignored.
  void Handle(const Message& message, int from);
  // An answer of the quorum record. It is ignored where the record has no vote in the view.
  void HandleRecord(const Message& message);
  Proposer& proposer() { return proposer_; }
  const Proposer& proposer() const { return proposer_; }
  // Lets the others have their turn to campaign first.
  void PostponeTurn() { turn_.Postpone(); }
  // A message about a view that is over.
  void AnswerOutdated(const Message& message) { acceptor_.AnswerOutdated(message); }
  Message ResignMessage() const { return acceptor_.ResignMessage(); }

  // The view can't go on as it is.
  bool fault() const;
  // This member takes part in the view, and knows of nothing that keeps it from training.
  bool able() const;
  bool changing() const {
    return !proposer_.idle() || acceptor_.pending() || parts_.state->stored().accepted_value;
  }
  // Accepts the proposal that waits for the workers to stop, if they have stopped.
  void AcceptPending();
  // Resigns if all workers of this pod are dead. True: this pod has resigned or has lost some of
  // its workers, and the others must hear of it.
  bool CheckWorkers();
  // Resigns from the current view: all workers of this pod are dead, or have stopped so that the
  // pod can leave. A resignation is never taken back.
  void Resign(const std::string& why);
  // Gives up all attempts to decide, because this member has promised a higher lineage.
  void Abandon();
  // The decided successor, once there is a quorum for it; else null.
  ViewPtr TakeDecision();
  MemberCounters counters() const;

 private:
  // An answer to the own proposer, from a pod or the record.
  void HandleAnswer(const Message& message, std::size_t voter);
  void OnPropose(const Ballot& ballot, const ViewPtr& value, const std::string& from);
  void OnResign(const Message& message, int from);

  // Constant after construction.
  Parts parts_;
  ClauseSet without_;

  Learner learner_;
  Acceptor acceptor_;
  CampaignTurn turn_;
  Proposer proposer_;
  MemberCounters decided_;  // only the counters `decided_by_...` are used
};

}  // namespace ringmaster::membership
