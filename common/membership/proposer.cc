#include "common/membership/proposer.h"

#include <algorithm>
#include <utility>

namespace ringmaster::membership {
namespace {

// So many unanswered requests, then a higher ballot: the answer may be one that only that brings.
constexpr int kRequestsPerBallot = 5;

}  // namespace

using Phase = Campaign::Phase;

Proposer::Proposer(const Parts& parts, const Timers& timers, std::uint64_t seed, ClauseSet without)
    : parts_(parts), retry_(timers.retry), without_(without), timer_(timers.campaign, seed) {
  EnterView();
}

void Proposer::EnterView() {
  campaign_ = {};
  timer_.Stop();
  max_round_ = std::max<std::int64_t>(0, parts_.state->stored().promised.round);
}

std::optional<TimePoint> Proposer::NextDeadline() const {
  if (!timer_.at() || !campaign_.repeat.at) return timer_.at() ? timer_.at() : campaign_.repeat.at;
  return std::min(*timer_.at(), *campaign_.repeat.at);
}

void Proposer::CheckFault(bool fault, bool may) {
  const MemberState& state = *parts_.state;
  const bool votes = state.voting() || (state.in_view() && !Holds(Clause::kOneAccepted));
  if (!votes || !may || !idle()) {
    timer_.Stop();
    return;
  }
  if (parts_.workers->finishing()) return;
  if (!fault) {
    // A promise may have been given to a proposer that saw a fault where there is none: nothing
    // follows from it.
    timer_.Stop();
    return;
  }
  // Another proposer's attempt is waited for, unless that proposer has gone silent.
  const Ballot& attempt = parts_.acceptor->CurrentBallot();
  const int owner = attempt.none() ? -1 : state.view().FindPod(attempt.pod);
  const int position = parts_.peers->Position();
  const TimePoint now = parts_.outbox->now();
  const bool own = owner == state.self();
  if (owner >= 0 && !own && parts_.peers->suspected(owner)) timer_.Shorten(now, position);
  if (!timer_.at()) {
    if (own) {
      timer_.Expire(now);
    } else {
      timer_.Start(now, position);
    }
  }
  if (*timer_.at() <= now) Begin();
}

void Proposer::Postpone() { timer_.Start(parts_.outbox->now(), parts_.peers->Position() + 1); }

void Proposer::RestartOrder() {
  if (!parts_.acceptor->pending() && !parts_.state->stored().accepted_value && idle()) {
    timer_.Stop();
  }
}

void Proposer::Begin() {
  const PersistentState& stored = parts_.state->stored();
  timer_.Stop();
  if (!parts_.peers->QuorumInReach() ||
      (!stored.accepted_value && !parts_.source->Successor(false))) {
    Postpone();
    return;
  }
  parts_.acceptor->DropPending();
  campaign_ = {};
  const Ballot round_zero{0, parts_.state->uid()};
  const bool resume = parts_.state->is_coordinator() && stored.accepted == round_zero &&
                      stored.promised == stored.accepted && max_round_ == 0;
  if (!resume && !parts_.acceptor->RoundZeroFree()) {
    BeginPrepare();
    return;
  }
  campaign_.ballot = round_zero;
  if (resume) campaign_.value = stored.accepted_value;
  campaign_.phase = Phase::kStopping;
  // What the workers had completed, and so which of them hold the state, is known when they have
  // stopped.
  parts_.workers->StopView();
}

void Proposer::BeginPrepare() {
  const PersistentState& stored = parts_.state->stored();
  ++campaigns_;
  max_round_ = std::max({max_round_, stored.promised.round, std::int64_t{0}}) + 1;
  campaign_.ballot = {max_round_, parts_.state->uid()};
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
  SendCampaign();
  CheckPromises();
}

void Proposer::OnPromise(const Message& message, std::size_t voter) {
  if (campaign_.phase != Phase::kPreparing || message.ballot != campaign_.ballot) return;
  campaign_.promises.Add(voter);
  if (Holds(Clause::kAdoptAccepted)) campaign_.Adopt(message.accepted, message.value);
}

void Proposer::CheckPromises() {
  const auto resigned = parts_.peers->Resignations();
  const Quorum quorum =
      FindQuorum(parts_.state->view(), campaign_.ballot, campaign_.promises, resigned, without_);
  if (quorum == Quorum::kNone) return;
  for (const Resignation* resignation : resigned) {
    if (resignation && Holds(Clause::kAdoptResigned)) {
      campaign_.Adopt(resignation->accepted, resignation->value);
    }
  }
  campaign_.phase = Phase::kStopping;
  campaign_.repeat.Stop();
  parts_.workers->StopView();
}

// The own ballot can't win any more: a pod has resigned with a higher promise, or no answer
// has come for long.
bool Proposer::Overtaken() const {
  for (const Resignation* resignation : parts_.peers->Resignations()) {
    if (resignation && campaign_.ballot < resignation->promised) return true;
  }
  return campaign_.repeat.Due(parts_.outbox->now()) && campaign_.repeat.times >= kRequestsPerBallot;
}

void Proposer::Advance() {
  const TimePoint now = parts_.outbox->now();
  if (campaign_.asking() && parts_.state->voting() && Overtaken()) {
    GiveUp();
    BeginPrepare();
  }
  if (campaign_.phase == Phase::kPreparing) {
    CheckPromises();
    if (campaign_.phase == Phase::kPreparing && campaign_.repeat.Due(now)) SendCampaign();
  }
  if (campaign_.phase == Phase::kStopping) CheckStopping();
  if (campaign_.phase == Phase::kProposing) {
    if (campaign_.ballot.round == 0 && !Holds(Clause::kRoundZeroOnce)) ReplaceRoundZeroValue();
    if (campaign_.repeat.Due(now)) SendCampaign();
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
  Postpone();
}

// What a coordinator without the clause RoundZeroOnce would do when it hears of a second loss.
void Proposer::ReplaceRoundZeroValue() {
  if (parts_.state->stored().resigned) return;
  const ViewPtr other = parts_.source->Successor(false);
  if (!other || *other == *campaign_.value) return;
  campaign_.value = other;
  Propose(false);
}

// This member accepts its own proposal first. That is stored, so round 0 has one value even if the
// member restarts; then the proposal is sent.
void Proposer::Propose(bool resigning) {
  campaign_.phase = Phase::kProposing;
  campaign_.repeat.Stop();
  parts_.learner->Votes(campaign_.ballot, campaign_.value);
  if (parts_.state->voting()) {
    parts_.acceptor->Accept(campaign_.ballot, campaign_.value, resigning);
  }
  SendCampaign();
}

Message Proposer::CampaignMessage() const {
  const bool preparing = campaign_.phase == Phase::kPreparing;
  Message message =
      parts_.outbox->MakeMessage(preparing ? MessageKind::kPrepare : MessageKind::kPropose);
  message.ballot = campaign_.ballot;
  if (!preparing) message.value = campaign_.value;
  return message;
}

void Proposer::AskAgain(const std::string& pod) {
  if (campaign_.asking() && parts_.state->in_view() && parts_.state->view().FindPod(pod) >= 0) {
    parts_.outbox->SendTo(pod, CampaignMessage());
  }
}

// Sends the request to all voters that have not answered.
void Proposer::SendCampaign() {
  const View& view = parts_.state->view();
  Message message = CampaignMessage();
  const VoterSet& answered = campaign_.phase == Phase::kPreparing
                                 ? campaign_.promises
                                 : parts_.learner->Votes(campaign_.ballot, campaign_.value);
  for (std::size_t i = 0; i < view.pods.size(); ++i) {
    if (answered.Has(i) || parts_.peers->resigned(static_cast<int>(i))) continue;
    parts_.outbox->SendTo(view.pods[i].uid, message);
  }
  const bool ask_record =
      RecordHasVote(view, without_) && (campaign_.repeat.times > 0 || parts_.peers->RecordNeeded());
  if (ask_record && !answered.Has(RecordIndex(view))) {
    message.base = parts_.state->stored().view;
    parts_.outbox->Emit(SendToRecord{std::move(message)});
  }
  campaign_.repeat.Again(parts_.outbox->now(), retry_);
}

void Proposer::YieldTo(const Ballot& ballot) {
  if (!idle() && campaign_.ballot < ballot) GiveUp();
}

void Proposer::OnRefused(const Message& message) {
  if (idle() || message.ballot != campaign_.ballot) return;
  if (message.promised <= campaign_.ballot) return;
  ++refused_;
  GiveUp();
  Postpone();
}

void Proposer::ObserveRounds(const Message& message) {
  max_round_ = std::max({max_round_, message.ballot.round, message.promised.round});
}

void Proposer::Resign() {
  const bool may = parts_.state->is_coordinator() && parts_.acceptor->RoundZeroFree() &&
                   parts_.peers->QuorumInReach();
  const ViewPtr last_word = may ? parts_.source->Successor(true) : nullptr;
  if (!last_word) {
    parts_.state->Resign();
    if (campaign_.phase != Phase::kProposing) GiveUp();
    return;
  }
  campaign_ = {};
  campaign_.ballot = {0, parts_.state->uid()};
  campaign_.value = last_word;
  Propose(true);
}

}  // namespace ringmaster::membership
