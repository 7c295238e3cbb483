// The proposer of one view's successor: with which ballot it campaigns and for which value (rules 4
// and 6). CampaignTurn decides when.
//
// The phases of a campaign are: prepare (not in round 0), stop the local workers, propose. Round 0
// needs no prepare because only the view's coordinator may use it, and for one value only. Owned by
// Succession; used by the member's thread only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "common/membership/acceptor.h"
#include "common/membership/campaign.h"
#include "common/membership/campaign_requests.h"
#include "common/membership/campaign_rounds.h"
#include "common/membership/campaign_turn.h"
#include "common/membership/clause.h"
#include "common/membership/local_workers.h"
#include "common/membership/member_state.h"
#include "common/membership/peer_status.h"

namespace ringmaster::membership {

// Where the value of a proposer that is free to choose comes from.
class SuccessorSource {
 public:
  virtual ~SuccessorSource() = default;
  // The successor that follows from what this member knows. Null: no worker that holds the
  // training state would be left. `without_self`: this member is about to resign.
  virtual ViewPtr Successor(bool without_self) const = 0;
};

class Proposer {
 public:
  struct Parts {
    MemberState* state;
    const PeerStatus* peers;
    LocalWorkers* workers;
    Acceptor* acceptor;
    CampaignTurn* turn;
    const SuccessorSource* source;
  };
  Proposer(const Parts& parts, const CampaignRequests& requests, ClauseSet without);

  void EnterView();

  bool idle() const { return campaign_.phase == Campaign::Phase::kIdle; }
  std::optional<TimePoint> NextDeadline() const;

  // Begins a campaign if this member's turn has come. `fault`: the view can't go on as it is. `may`
  // is false while this member is about to resign and must not campaign before.
  void CheckFault(bool fault, bool may);
  // Begins a campaign, unless too few voters can be reached or no worker that holds the state would
  // be left: then the others have their turn first.
  void Begin();
  // Goes on with the campaign as far as the answers and the workers allow.
  void Advance();
  void GiveUp();
  // Gives up if `ballot`, of another proposer, is higher than the own one.
  void YieldTo(const Ballot& ballot);
  // Stores that this member resigns. If it coordinates and still may, it accepts and proposes the
  // view without itself with the same write, so that no other member has to campaign.
  void Resign();

  void OnPromise(const Message& message, std::size_t voter);
  void OnRefused(const Message& message);
  // Repeats the current request to a pod that did not know the view until now.
  void AskAgain(const std::string& pod);

  CampaignRounds& rounds() { return rounds_; }
  const CampaignRounds& rounds() const { return rounds_; }

 private:
  bool Holds(Clause clause) const { return !without_.Has(clause); }
  void BeginPrepare();
  void CheckPromises();
  void CheckStopping();
  void ReplaceRoundZeroValue();
  void Propose(bool resigning);

  // Constant after construction.
  Parts parts_;
  ClauseSet without_;

  Campaign campaign_;
  CampaignRequests requests_;
  CampaignRounds rounds_;
};

}  // namespace ringmaster::membership
