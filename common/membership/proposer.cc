#include "common/membership/proposer.h"

#include <algorithm>
#include <vector>

#include "common/membership/reach.h"

namespace ringmaster::membership {

using Phase = Campaign::Phase;

namespace {

// A pod has resigned with a promise above `ballot`. Its resignation does not count for this ballot
// (rule 6b), but would for a higher one.
bool Overtaken(const Ballot& ballot, const std::vector<const Resignation*>& resignations) {
  return std::any_of(resignations.begin(), resignations.end(), [&](const Resignation* resignation) {
    return resignation && ballot < resignation->promised;
  });
}

}  // namespace

Proposer::Proposer(const Parts& parts, const CampaignRequests& requests, ClauseSet without)
    : parts_(parts), without_(without), requests_(requests) {
  EnterView();
}

void Proposer::EnterView() {
  GiveUp();
  parts_.turn->Stop();
  rounds_.EnterView(parts_.state->stored().promised.round);
}

std::optional<TimePoint> Proposer::NextDeadline() const {
  const auto& turn = parts_.turn->at();
  if (!turn || !requests_.at()) return turn ? turn : requests_.at();
  return std::min(*turn, *requests_.at());
}

void Proposer::GiveUp() {
  campaign_ = {};
  requests_.Stop();
}

void Proposer::CheckFault(bool fault, bool may) {
  if (parts_.turn->HasCome(fault, may && idle())) Begin();
}

void Proposer::Begin() {
  const PersistentState& stored = parts_.state->stored();
  parts_.turn->Stop();
  if (!QuorumInReach(*parts_.state, *parts_.peers, without_) ||
      (!stored.accepted_value && !parts_.source->Successor(false))) {
    parts_.turn->Postpone();
    return;
  }
  parts_.acceptor->DropPending();
  GiveUp();
  const Ballot round_zero{0, parts_.state->uid()};
  // This coordinator has accepted its own value of round 0, perhaps before a restart: it may
  // propose that value again without a prepare, as long as it has heard of no later round.
  const bool resume = parts_.state->is_coordinator() && stored.accepted == round_zero &&
                      stored.promised == stored.accepted && rounds_.untouched();
  if (!resume && !parts_.acceptor->RoundZeroFree()) {
    BeginPrepare();
    return;
  }
  campaign_.ballot = round_zero;
  if (resume) campaign_.value = stored.accepted_value;
  campaign_.phase = Phase::kStopping;
  // The value is chosen when they have stopped: only then is it known what they have completed, and
  // so which of them hold the state.
  parts_.workers->StopView();
}

void Proposer::BeginPrepare() {
  const PersistentState& stored = parts_.state->stored();
  campaign_.ballot = {rounds_.Next(stored.promised.round), parts_.state->uid()};
  campaign_.phase = Phase::kPreparing;
  campaign_.adopted = stored.accepted;
  campaign_.value = stored.accepted_value;
  if (parts_.state->voting()) {
    parts_.state->Promise(campaign_.ballot);
    campaign_.promises.Add(parts_.state->self());
  }
  if (!Holds(Clause::kPrepareFirst)) {
    campaign_.phase = Phase::kStopping;
    parts_.workers->StopView();
    return;
  }
  requests_.Send(campaign_);
  CheckPromises();
}

void Proposer::OnPromise(const Message& message, std::size_t voter) {
  if (campaign_.phase != Phase::kPreparing || message.ballot != campaign_.ballot) return;
  campaign_.promises.Add(voter);
  if (Holds(Clause::kAdoptAccepted)) campaign_.Adopt(message.accepted, message.value);
}

void Proposer::CheckPromises() {
  const auto& resigned = parts_.peers->Resignations();
  const Quorum quorum =
      FindQuorum(parts_.state->view(), campaign_.ballot, campaign_.promises, resigned, without_);
  if (quorum == Quorum::kNone) return;
  for (const Resignation* resignation : resigned) {
    if (resignation && Holds(Clause::kAdoptResigned)) {
      campaign_.Adopt(resignation->accepted, resignation->value);
    }
  }
  campaign_.phase = Phase::kStopping;
  requests_.Stop();
  parts_.workers->StopView();
}

void Proposer::Advance() {
  // Tries a higher ballot where a resignation does not count for this one, or where this one has
  // had no answer for long.
  if (campaign_.asking() && parts_.state->voting() &&
      (Overtaken(campaign_.ballot, parts_.peers->Resignations()) || requests_.Exhausted())) {
    GiveUp();
    BeginPrepare();
  }
  if (campaign_.phase == Phase::kPreparing) {
    CheckPromises();
    if (campaign_.phase == Phase::kPreparing && requests_.Due()) requests_.Send(campaign_);
  }
  if (campaign_.phase == Phase::kStopping) CheckStopping();
  if (campaign_.phase == Phase::kProposing) {
    if (campaign_.ballot.round == 0 && !Holds(Clause::kRoundZeroOnce)) ReplaceRoundZeroValue();
    if (requests_.Due()) requests_.Send(campaign_);
  }
}

// Proposes once the workers have stopped.
void Proposer::CheckStopping() {
  const PersistentState& stored = parts_.state->stored();
  const bool outbid = campaign_.ballot < stored.promised && Holds(Clause::kPromiseKept);
  const bool silent =
      stored.resigned && Holds(Clause::kOneAccepted) && Holds(Clause::kResignedSilent);
  if (outbid || silent) {
    GiveUp();
    return;
  }
  if (!parts_.workers->stopped() && Holds(Clause::kStopBeforeAccept)) return;
  if (!campaign_.value) campaign_.value = parts_.source->Successor(false);
  if (campaign_.value) {
    Propose(false);
    return;
  }
  GiveUp();  // no worker that holds the state would be left
  parts_.turn->Postpone();
}

// For tests: what a coordinator without the clause RoundZeroOnce does when it hears of a new loss.
void Proposer::ReplaceRoundZeroValue() {
  if (parts_.state->stored().resigned) return;
  const ViewPtr other = parts_.source->Successor(false);
  if (!other || *other == *campaign_.value) return;
  campaign_.value = other;
  Propose(false);
}

// This member accepts its own proposal before it sends it. The acceptance is stored, so round 0 has
// one value even if the member restarts.
void Proposer::Propose(bool resigning) {
  campaign_.phase = Phase::kProposing;
  requests_.Stop();
  if (parts_.state->voting()) {
    parts_.acceptor->Accept(campaign_.ballot, campaign_.value, resigning);
  }
  requests_.Send(campaign_);
}

void Proposer::AskAgain(const std::string& pod) {
  if (campaign_.asking() && parts_.state->in_view() && parts_.state->FindPod(pod) >= 0) {
    requests_.SendTo(pod, campaign_);
  }
}

void Proposer::YieldTo(const Ballot& ballot) {
  if (!idle() && campaign_.ballot < ballot) GiveUp();
}

void Proposer::OnRefused(const Message& message) {
  if (idle() || message.ballot != campaign_.ballot) return;
  if (message.promised <= campaign_.ballot) return;
  rounds_.CountRefusal();
  GiveUp();
  parts_.turn->Postpone();
}

void Proposer::Resign() {
  const bool may = parts_.state->is_coordinator() && parts_.acceptor->RoundZeroFree() &&
                   QuorumInReach(*parts_.state, *parts_.peers, without_);
  const ViewPtr last_word = may ? parts_.source->Successor(true) : nullptr;
  if (!last_word) {
    parts_.state->Resign();
    // A proposal that was sent goes on, because it may still be decided.
    if (campaign_.phase != Phase::kProposing) GiveUp();
    return;
  }
  GiveUp();
  campaign_.ballot = {0, parts_.state->uid()};
  campaign_.value = last_word;
  Propose(true);
}

}  // namespace ringmaster::membership
