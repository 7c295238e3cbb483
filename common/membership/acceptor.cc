#include "common/membership/acceptor.h"

#include <utility>

namespace ringmaster::membership {

void Acceptor::Refuse(const Ballot& ballot, const std::string& to) {
  Message refused = parts_.outbox->MakeMessage(MessageKind::kRefused);
  refused.ballot = ballot;
  refused.promised = parts_.state->stored().promised;
  parts_.outbox->SendTo(to, std::move(refused));
}

bool Acceptor::OnPrepare(const Message& message) {
  MemberState& state = *parts_.state;
  if (message.ballot.round < 1) return false;
  if (!state.voting()) {
    if (state.stored().resigned) parts_.outbox->SendTo(message.from, ResignMessage());
    return false;
  }
  if (message.ballot < state.stored().promised && Holds(Clause::kPromiseKept)) {
    Refuse(message.ballot, message.from);
    return false;
  }
  if (state.stored().promised != message.ballot) state.Promise(message.ballot);
  Message promise = parts_.outbox->MakeMessage(MessageKind::kPromise);
  promise.ballot = message.ballot;
  promise.accepted = state.stored().accepted;
  promise.value = state.stored().accepted_value;
  promise.number = parts_.ranks->ran() ? 1 : 0;
  parts_.outbox->SendTo(message.from, std::move(promise));
  return true;
}

bool Acceptor::OnPropose(const Ballot& ballot, const ViewPtr& value, const std::string& from) {
  const MemberState& state = *parts_.state;
  if (!value || ballot.none()) return false;
  if (value->parent != state.epoch() || value->epoch != state.epoch() + 1) return false;
  if (ballot.round == 0 && ballot.pod != state.view().coordinator) return false;
  if (!state.voting()) {
    if (state.stored().resigned) parts_.outbox->SendTo(from, ResignMessage());
    return false;
  }
  if (ballot < state.stored().promised && Holds(Clause::kPromiseKept)) {
    Refuse(ballot, from);
    return false;
  }
  if (pending_ && ballot < pending_->ballot) return false;
  pending_ = Pending{ballot, value};
  if (Holds(Clause::kStopBeforeAccept)) parts_.workers->StopView();
  return true;
}

void Acceptor::AnswerOutdated(const Message& message) {
  // A vote for the view that this member has by now: it came after the quorum, and its sender was
  // told when the view was decided. If that was lost, its heartbeats will name the older view.
  if (message.kind == MessageKind::kAccepted && EpochOf(message.value) == parts_.state->epoch())
    return;
  const bool prepare = message.kind == MessageKind::kPrepare;
  const bool propose = message.kind == MessageKind::kPropose;
  if ((!prepare && !propose) || Holds(Clause::kCurrentViewOnly)) {
    parts_.outbox->SendTo(message.from, parts_.outbox->MakeViewMessage());
    return;
  }
  // Only where a test has taken the clause out: votes without knowing what it voted in that view.
  Message answer =
      parts_.outbox->MakeMessage(prepare ? MessageKind::kPromise : MessageKind::kAccepted);
  answer.view = message.view;
  answer.ballot = message.ballot;
  if (propose) answer.value = message.value;
  parts_.outbox->SendTo(message.from, std::move(answer));
}

bool Acceptor::AcceptPending() {
  if (!pending_ || (!parts_.workers->stopped() && Holds(Clause::kStopBeforeAccept))) return false;
  const Pending pending = *std::exchange(pending_, std::nullopt);
  const MemberState& state = *parts_.state;
  // While the workers were stopping, this member may have resigned or promised a higher ballot.
  const bool outbid = pending.ballot < state.stored().promised && Holds(Clause::kPromiseKept);
  if (!state.voting() || outbid) return false;
  Accept(pending.ballot, pending.value, false);
  Message accepted = parts_.outbox->MakeMessage(MessageKind::kAccepted);
  accepted.ballot = pending.ballot;
  accepted.value = pending.value;
  parts_.outbox->SendTo(pending.ballot.pod, accepted);
  // The next coordinator counts the votes, too: the proposer may die before it sees the quorum.
  const std::string& next = pending.value->coordinator;
  if (next != pending.ballot.pod) parts_.outbox->SendTo(next, accepted);
  return true;
}

void Acceptor::Accept(const Ballot& ballot, const ViewPtr& value, bool resigning) {
  MemberState& state = *parts_.state;
  const bool known =
      state.stored().accepted == ballot && state.stored().promised == ballot && !resigning;
  if (!known) {
    state.Accept(ballot, value, resigning);
    if (resigning) parts_.peers->SetResignation(state.self(), ResignationOf(state.stored()));
  }
  parts_.learner->AddVote(ballot, value, state.self());
}

const Ballot& Acceptor::CurrentBallot() const {
  return pending_ ? pending_->ballot : parts_.state->stored().accepted;
}

bool Acceptor::RoundZeroFree() const {
  const MemberState& state = *parts_.state;
  if (!state.is_coordinator() || state.stored().promised.round > 0) return false;
  return state.stored().accepted.none() || !Holds(Clause::kRoundZeroOnce);
}

Message Acceptor::ResignMessage() const {
  const PersistentState& stored = parts_.state->stored();
  Message message = parts_.outbox->MakeMessage(MessageKind::kResign);
  message.promised = stored.promised;
  message.accepted = stored.accepted;
  message.value = stored.accepted_value;
  message.number = parts_.ranks->ran() ? 1 : 0;
  return message;
}

}  // namespace ringmaster::membership
