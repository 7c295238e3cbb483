#include "common/membership/succession.h"

#include "common/membership/member_state.h"

namespace ringmaster::membership {

Succession::Succession(const Parts& parts, const Config& config)
    : parts_(parts),
      learner_(config.without),
      acceptor_({parts.state, parts.peers, parts.ranks, parts.workers, &learner_, parts.outbox},
                config.without),
      turn_({parts.state, parts.peers, parts.workers, &acceptor_, parts.outbox},
            config.timers.campaign, config.seed, config.without),
      proposer_({parts.state, parts.peers, parts.workers, &acceptor_, &turn_, &learner_,
                 parts.source, parts.outbox},
                config.timers.retry, config.without) {}

void Succession::EnterView() {
  learner_.EnterView();
  acceptor_.EnterView();
  proposer_.EnterView();
}

void Succession::Handle(const Message& message, int from) {
  switch (message.kind) {
    case MessageKind::kPrepare:
      if (acceptor_.OnPrepare(message)) {
        proposer_.YieldTo(message.ballot);
        turn_.Postpone();
      }
      return;
    case MessageKind::kPropose:
      OnPropose(message.ballot, message.value, message.from);
      return;
    case MessageKind::kResign:
      OnResign(message, from);
      return;
    default:
      HandleAnswer(message, from);
  }
}

void Succession::HandleAnswer(const Message& message, std::size_t voter) {
  switch (message.kind) {
    case MessageKind::kPromise:
      if (message.number == 1) parts_.ranks->SetRan();
      proposer_.OnPromise(message, voter);
      return;
    case MessageKind::kAccepted:
      if (message.value && message.value->parent == parts_.state->epoch() &&
          !message.ballot.none()) {
        learner_.AddVote(message.ballot, message.value, voter);
      }
      return;
    case MessageKind::kRefused:
      proposer_.OnRefused(message);
      return;
    default:
      return;
  }
}

void Succession::OnPropose(const Ballot& ballot, const ViewPtr& value, const std::string& from) {
  if (acceptor_.OnPropose(ballot, value, from)) proposer_.YieldTo(ballot);
}

bool Succession::fault() const {
  return parts_.workers->stop_sent() || parts_.workers->stopped() || acceptor_.pending() ||
         parts_.state->stored().accepted_value || parts_.peers->AnyFault() ||
         parts_.ranks->AnyLost();
}

void Succession::AcceptPending() {
  if (acceptor_.AcceptPending()) turn_.Postpone();
}

void Succession::Resign() {
  proposer_.Resign();
  parts_.peers->SetResignation(parts_.state->self(), parts_.state->resignation());
  acceptor_.DropPending();
  parts_.outbox->EmitLog("all workers of this pod have ended: resigns from " +
                         EpochText(parts_.state->epoch()));
}

void Succession::OnResign(const Message& message, int from) {
  if (message.number == 1) parts_.ranks->SetRan();
  if (!parts_.peers->resigned(from)) {
    parts_.peers->SetResignation(from, {message.promised, message.accepted, message.value});
    parts_.outbox->EmitLog(parts_.state->view().pods[from].name + " has resigned");
    if (proposer_.idle()) turn_.RestartOrder();
  }
  // What it had accepted was proposed: no need to wait for the proposal itself.
  const PersistentState& stored = parts_.state->stored();
  if (message.value && message.accepted >= stored.promised && message.accepted != stored.accepted &&
      !stored.resigned) {
    OnPropose(message.accepted, message.value, message.from);
  }
}

ViewPtr Succession::TakeDecision() {
  const auto decision = learner_.FindDecision(parts_.state->view(), parts_.peers->Resignations());
  if (!decision) return nullptr;
  if (decision->quorum == Quorum::kMajority) ++decided_.decided_by_majority;
  if (decision->quorum == Quorum::kRecord) ++decided_.decided_by_record;
  if (decision->quorum == Quorum::kAll) ++decided_.decided_by_all;
  return decision->value;
}

MemberCounters Succession::counters() const {
  MemberCounters counters = decided_;
  counters.campaigns = proposer_.campaigns();
  counters.refused = proposer_.refused();
  return counters;
}

void Succession::Abandon() {
  proposer_.GiveUp();
  acceptor_.DropPending();
}

}  // namespace ringmaster::membership
