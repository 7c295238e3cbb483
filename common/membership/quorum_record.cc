#include "common/membership/quorum_record.h"

#include <algorithm>
#include <utility>

namespace ringmaster::membership {
namespace {

Message Answer(MessageKind kind, const Message& question) {
  Message answer;
  answer.kind = kind;
  answer.from = kRecordName;
  answer.view = question.view;
  answer.ballot = question.ballot;
  return answer;
}

void MoveTo(ViewPtr view, RecordResult* result) {
  result->state.view = std::move(view);
  result->state.promised = {};
  result->state.accepted = {};
  result->state.accepted_value = nullptr;
  result->changed = true;
}

void AnswerOwnView(const Message& question, RecordResult* result) {
  result->answer = Answer(MessageKind::kDecided, question);
  result->answer.value = result->state.view;
}

void AnswerPrepare(const Message& message, RecordResult* result) {
  QuorumRecord& state = result->state;
  if (state.promised < message.ballot) {
    state.promised = message.ballot;
    result->changed = true;
  }
  result->answer = Answer(MessageKind::kPromise, message);
  result->answer.accepted = state.accepted;
  result->answer.value = state.accepted_value;
}

void AnswerPropose(const Message& message, RecordResult* result) {
  QuorumRecord& state = result->state;
  if (state.accepted != message.ballot || state.promised != message.ballot) {
    state.promised = std::max(state.promised, message.ballot);
    state.accepted = message.ballot;
    state.accepted_value = message.value;
    result->changed = true;
  }
  result->answer = Answer(MessageKind::kAccepted, message);
  result->answer.value = state.accepted_value;
}

}  // namespace

QuorumRecord NewRecord(ViewPtr first) {
  QuorumRecord state;
  state.view = std::move(first);
  return state;
}

RecordResult AnswerAsRecord(const QuorumRecord& state, const Message& message, ClauseSet without) {
  RecordResult result{state, {}, false};
  bool vote = message.kind == MessageKind::kPrepare || message.kind == MessageKind::kPropose;
  const ViewPtr& news = vote ? message.base : message.value;
  Epoch own = EpochOf(state.view);
  // Every view that the record is shown is decided. It moves up to a newer one and never down,
  // because in an older view it would have forgotten its vote.
  bool older = EpochOf(news) < own;
  if (older && vote && without.Has(Clause::kRecordRefusesOlder)) older = false;
  if (!news || older || EpochLineage(news->epoch) < state.lineage ||
      (vote && news->epoch != message.view)) {
    AnswerOwnView(message, &result);
    return result;
  }
  if (news->epoch != own) MoveTo(news, &result);
  if (!vote) {
    AnswerOwnView(message, &result);
    return result;
  }
  bool empty_propose = message.kind == MessageKind::kPropose && !message.value;
  if (message.ballot.none() || empty_propose) {
    AnswerOwnView(message, &result);
  } else if (message.ballot < result.state.promised && !without.Has(Clause::kPromiseKept)) {
    result.answer = Answer(MessageKind::kRefused, message);
    result.answer.promised = result.state.promised;
  } else if (message.kind == MessageKind::kPrepare) {
    AnswerPrepare(message, &result);
  } else {
    AnswerPropose(message, &result);
  }
  return result;
}

}  // namespace ringmaster::membership
