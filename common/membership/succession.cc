#include "common/membership/succession.h"

#include "common/membership/member_state.h"

namespace ringmaster::membership {

Succession::Succession(const Parts& parts, const Config& config)
    : parts_(parts),
      without_(config.without),
      learner_(config.without),
      acceptor_({parts.state, parts.peers, parts.ranks, parts.workers, &learner_, parts.outbox},
                config.without),
      turn_({parts.state, parts.peers, parts.workers, &acceptor_, parts.outbox},
            config.timers.campaign, config.seed, config.without),
      proposer_({parts.state, parts.peers, parts.workers, &acceptor_, &turn_, parts.source},
                CampaignRequests({parts.state, parts.peers, &learner_, parts.outbox},
                                 config.timers.retry, config.without),
                config.without) {}

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

void Succession::HandleRecord(const Message& message) {
  const MemberState& state = *parts_.state;
  if (!state.in_view() || state.frozen() || message.view != state.epoch()) return;
  if (!RecordHasVote(state.view(), without_)) return;
  proposer_.rounds().Observe(message);
  HandleAnswer(message, RecordIndex(state.view()));
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

bool Succession::able() const {
  return parts_.state->voting() && !parts_.state->frozen() && !fault();
}

bool Succession::fault() const {
  return parts_.workers->stop_sent() || parts_.workers->stopped() || acceptor_.pending() ||
         parts_.state->stored().accepted_value || parts_.peers->AnyFault() ||
         parts_.ranks->AnyLost();
}

void Succession::AcceptPending() {
  if (acceptor_.AcceptPending()) turn_.Postpone();
}

// If all workers of the pod are dead it resigns (rule 7). If only some are, it stays a member and
// the next view has other ranks.
bool Succession::CheckWorkers() {
  const bool over = parts_.state->stored().resigned || parts_.workers->finishing();
  if (!parts_.workers->known() || over) return false;
  const RankStatus::OwnRanks own = parts_.ranks->UpdateOwn(parts_.state->self(), *parts_.workers);
  if (own.any_alive && !parts_.workers->all_dead()) return own.news;
  Resign("all workers of this pod have ended");
  return true;
}

void Succession::Resign(const std::string& why) {
  parts_.workers->SetAllDead();
  AcceptPending();  // first, because an acceptance counts for a majority and a resignation does not
  proposer_.Resign();
  parts_.peers->SetResignation(parts_.state->self(), ResignationOf(parts_.state->stored()));
  acceptor_.DropPending();
  parts_.outbox->EmitLog(why + ": resigns from " + EpochText(parts_.state->epoch()));
}

void Succession::OnResign(const Message& message, int from) {
  if (message.number == 1) parts_.ranks->SetRan();
  if (!parts_.peers->resigned(from)) {
    parts_.peers->SetResignation(from, {message.promised, message.accepted, message.value});
    parts_.outbox->EmitLog(parts_.state->view().pods[from].name + " has resigned");
    if (proposer_.idle()) turn_.RestartOrder();
  }
  // The value that the sender had accepted was proposed by some member, so this member can accept
  // it without waiting for the proposal itself.
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
  counters.campaigns = proposer_.rounds().campaigns();
  counters.refused = proposer_.rounds().refused();
  return counters;
}

void Succession::Abandon() {
  proposer_.GiveUp();
  acceptor_.DropPending();
}

}  // namespace ringmaster::membership
