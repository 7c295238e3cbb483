// The acceptor: promise, accept, resign (rules 4, 5, 7).
#include <algorithm>
#include <utility>

#include "common/membership/member_impl.h"

namespace ringmaster::membership {

// A message about a view that is over: the sender gets the newer one.
void MemberImpl::AnswerOutsider(const Message& message) {
  bool vote = message.kind == MessageKind::kPrepare || message.kind == MessageKind::kPropose;
  if (vote && !Holds(Clause::kCurrentViewOnly)) {
    Message answer = Make(message.kind == MessageKind::kPrepare ? MessageKind::kPromise
                                                                : MessageKind::kAccepted);
    answer.view = message.view;
    answer.ballot = message.ballot;
    if (message.kind == MessageKind::kPropose) answer.value = message.value;
    SendTo(message.from, std::move(answer));
    return;
  }
  Message answer = Make(MessageKind::kDecided);
  answer.value = state_.view;
  SendTo(message.from, std::move(answer));
}

void MemberImpl::OnPrepare(const Message& message) {
  if (message.ballot.round < 1) return;
  if (!Voting()) {
    if (state_.resigned) SendTo(message.from, ResignMessage());
    return;
  }
  if (message.ballot < state_.promised && Holds(Clause::kPromiseKept)) {
    Message refused = Make(MessageKind::kRefused);
    refused.ballot = message.ballot;
    refused.promised = state_.promised;
    SendTo(message.from, std::move(refused));
    return;
  }
  if (state_.promised != message.ballot) {
    state_.promised = message.ballot;
    if (Holds(Clause::kStoreBeforeAnswer)) Store();
  }
  if (campaign_.phase != Phase::kIdle && campaign_.ballot < message.ballot) GiveUp();
  campaign_at_ = now_ + Patience(Position() + 1);
  Message promise = Make(MessageKind::kPromise);
  promise.ballot = message.ballot;
  promise.accepted = state_.accepted;
  promise.value = state_.accepted_value;
  promise.number = ran_ ? 1 : 0;
  SendTo(message.from, std::move(promise));
}

void MemberImpl::OnPropose(const Ballot& ballot, const ViewPtr& value, const std::string& from) {
  if (!value || ballot.none()) return;
  if (value->parent != view().epoch || value->epoch != view().epoch + 1) return;
  if (ballot.round == 0 && ballot.pod != view().coordinator) return;
  if (!Voting()) {
    if (state_.resigned && from != uid()) SendTo(from, ResignMessage());
    return;
  }
  if (ballot < state_.promised && Holds(Clause::kPromiseKept)) {
    Message refused = Make(MessageKind::kRefused);
    refused.ballot = ballot;
    refused.promised = state_.promised;
    SendTo(from, std::move(refused));
    return;
  }
  if (pending_ && ballot < pending_->ballot) return;
  if (campaign_.phase != Phase::kIdle && campaign_.ballot < ballot) GiveUp();
  pending_ = Pending{ballot, value};
  if (Holds(Clause::kStopBeforeAccept)) EnsureStopped();
}

// Accepts what was proposed once the workers have stopped using the view for good.
void MemberImpl::CheckPending() {
  if (!pending_ || (!stopped_ && Holds(Clause::kStopBeforeAccept))) return;
  Pending pending = *std::exchange(pending_, std::nullopt);
  if (!Voting() || (pending.ballot < state_.promised && Holds(Clause::kPromiseKept))) return;
  Accept(pending.ballot, pending.value, false);
  campaign_at_ = now_ + Patience(Position() + 1);
  Message accepted = Make(MessageKind::kAccepted);
  accepted.ballot = pending.ballot;
  accepted.value = pending.value;
  SendTo(pending.ballot.pod, accepted);
  // The next coordinator sees the quorum as soon as the proposer does, or in its place.
  const std::string& next = pending.value->coordinator;
  if (next != pending.ballot.pod) SendTo(next, accepted);
}

void MemberImpl::Accept(const Ballot& ballot, const ViewPtr& value, bool resigning) {
  bool known = state_.accepted == ballot && state_.promised == ballot && !resigning;
  if (!known) {
    state_.promised = std::max(state_.promised, ballot);
    state_.accepted = ballot;
    state_.accepted_value = value;
    state_.resigned = state_.resigned || resigning;
    if (Holds(Clause::kStoreBeforeAnswer)) Store();
    if (resigning) facts_[self_].resignation = {state_.promised, ballot, value};
  }
  TallyFor(ballot, value)->yes.Add(self_);
}

// ---- Rule 7

Message MemberImpl::ResignMessage() const {
  Message message = Make(MessageKind::kResign);
  message.promised = state_.promised;
  message.accepted = state_.accepted;
  message.value = state_.accepted_value;
  message.number = ran_ ? 1 : 0;
  return message;
}

void MemberImpl::BroadcastResign() { SendToOthers(ResignMessage()); }

// All workers of this pod are dead, or have stopped to leave. Nothing takes this back for the view.
void MemberImpl::ResignSelf() {
  if (state_.resigned) return;
  ViewPtr last_word;
  if (IsCoordinator() && RoundZeroFree() && Feasible()) last_word = FreeValue(true);
  if (last_word) {
    // A coordinator that goes proposes the view without itself, so nobody has to campaign for it.
    campaign_ = {};
    campaign_.ballot = {0, uid()};
    campaign_.value = last_word;
    Propose(true);
  } else {
    state_.resigned = true;
    Store();
    if (campaign_.phase != Phase::kProposing) GiveUp();
  }
  facts_[self_].resignation = {state_.promised, state_.accepted, state_.accepted_value};
  pending_.reset();
  report_repeat_.Stop();
  Say("all workers of this pod have ended: resigns from " + EpochText(view().epoch));
}

void MemberImpl::OnResign(const Message& message, int from) {
  ran_ = ran_ || message.number == 1;
  if (!facts_[from].resignation) {
    facts_[from].resignation = {message.promised, message.accepted, message.value};
    Say(view().pods[from].name + " has resigned");
    // A wait for somebody ahead in the order may have ended with this.
    if (!pending_ && !state_.accepted_value && campaign_.phase == Phase::kIdle) {
      campaign_at_.reset();
    }
  }
  // What it had accepted was proposed: no need to wait for the proposal itself.
  if (message.value && message.accepted >= state_.promised && message.accepted != state_.accepted &&
      !state_.resigned) {
    OnPropose(message.accepted, message.value, message.from);
  }
}

void MemberImpl::EnsureStopped() {
  if (stop_sent_ || stopped_) return;
  stop_sent_ = true;
  if (!state_.stopping) {
    // Stored first: a sidecar that restarts must know that its workers will not go on in this view.
    state_.stopping = true;
    Store();
  }
  Emit(StopWorkers{view().epoch});
}

}  // namespace ringmaster::membership
