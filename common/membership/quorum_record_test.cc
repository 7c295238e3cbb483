#include "common/membership/quorum_record.h"

#include <gtest/gtest.h>

namespace ringmaster::membership {
namespace {

ViewPtr MakeView(std::uint64_t number) {
  auto view = std::make_shared<View>();
  view->epoch = MakeEpoch(1, number);
  view->parent = MakeEpoch(1, number - 1);
  view->coordinator = "a";
  view->pods = {{"a", "a", 1}, {"b", "b", 1}};
  return view;
}

Message Ask(MessageKind kind, Ballot ballot, ViewPtr base, ViewPtr value = nullptr) {
  Message message;
  message.kind = kind;
  message.from = ballot.pod;
  message.view = EpochOf(base);
  message.ballot = std::move(ballot);
  message.base = std::move(base);
  message.value = std::move(value);
  return message;
}

TEST(RecordTest, ItPromisesAndReportsWhatItHasAccepted) {
  QuorumRecord state = NewRecord(MakeView(1));
  auto accepted =
      AnswerAsRecord(state, Ask(MessageKind::kPropose, {0, "a"}, MakeView(1), MakeView(2)));
  EXPECT_EQ(accepted.answer.kind, MessageKind::kAccepted);
  EXPECT_TRUE(accepted.changed);
  auto promise = AnswerAsRecord(accepted.state, Ask(MessageKind::kPrepare, {1, "b"}, MakeView(1)));
  EXPECT_EQ(promise.answer.kind, MessageKind::kPromise);
  EXPECT_EQ(promise.answer.accepted, (Ballot{0, "a"}));
  EXPECT_EQ(promise.answer.value->epoch, MakeEpoch(1, 2));
}

TEST(RecordTest, ItAcceptsNothingBelowItsPromise) {
  QuorumRecord state = NewRecord(MakeView(1));
  state = AnswerAsRecord(state, Ask(MessageKind::kPrepare, {2, "b"}, MakeView(1))).state;
  auto refused =
      AnswerAsRecord(state, Ask(MessageKind::kPropose, {1, "a"}, MakeView(1), MakeView(2)));
  EXPECT_EQ(refused.answer.kind, MessageKind::kRefused);
  EXPECT_EQ(refused.answer.promised, (Ballot{2, "b"}));
  EXPECT_FALSE(refused.changed);
}

TEST(RecordTest, ItRefusesViewsOlderThanItsOwn) {
  QuorumRecord state = NewRecord(MakeView(3));
  auto answer = AnswerAsRecord(state, Ask(MessageKind::kPrepare, {1, "b"}, MakeView(2)));
  EXPECT_EQ(answer.answer.kind, MessageKind::kDecided);
  EXPECT_EQ(answer.answer.value->epoch, MakeEpoch(1, 3));
  EXPECT_FALSE(answer.changed);
}

TEST(RecordTest, ItMovesUpToAViewItHasNotSeenBeforeItVotes) {
  QuorumRecord state = NewRecord(MakeView(1));
  state = AnswerAsRecord(state, Ask(MessageKind::kPrepare, {9, "b"}, MakeView(1))).state;
  auto answer = AnswerAsRecord(state, Ask(MessageKind::kPrepare, {1, "a"}, MakeView(5)));
  EXPECT_EQ(answer.answer.kind, MessageKind::kPromise);
  EXPECT_EQ(answer.state.view->epoch, MakeEpoch(1, 5));
  EXPECT_EQ(answer.state.promised, (Ballot{1, "a"}));
}

TEST(RecordTest, ItDoesNotVoteBelowItsLineage) {
  QuorumRecord state = NewRecord(MakeView(1));
  state.lineage = 2;
  auto answer = AnswerAsRecord(state, Ask(MessageKind::kPrepare, {1, "a"}, MakeView(1)));
  EXPECT_EQ(answer.answer.kind, MessageKind::kDecided);
  EXPECT_FALSE(answer.changed);
}

TEST(RecordTest, ARepeatedQuestionGetsTheSameAnswerWithoutAWrite) {
  QuorumRecord state = NewRecord(MakeView(1));
  Message propose = Ask(MessageKind::kPropose, {0, "a"}, MakeView(1), MakeView(2));
  RecordResult first = AnswerAsRecord(state, propose);
  RecordResult again = AnswerAsRecord(first.state, propose);
  EXPECT_EQ(first.answer, again.answer);
  EXPECT_FALSE(again.changed);
}

TEST(RecordTest, AQuestionWithoutItsViewIsAnsweredWithTheRecordsOwn) {
  QuorumRecord state = NewRecord(MakeView(1));
  Message message = Ask(MessageKind::kPrepare, {1, "a"}, nullptr);
  EXPECT_EQ(AnswerAsRecord(state, message).answer.kind, MessageKind::kDecided);
}

TEST(RecordTest, APromiseIsAChangeAndTheSameOnceMoreIsNone) {
  const QuorumRecord state = NewRecord(MakeView(1));
  const Message prepare = Ask(MessageKind::kPrepare, {1, "b"}, MakeView(1));
  const RecordResult first = AnswerAsRecord(state, prepare);
  EXPECT_TRUE(first.changed) << "it would be forgotten";
  EXPECT_EQ(first.state.promised, (Ballot{1, "b"}));
  EXPECT_FALSE(AnswerAsRecord(first.state, prepare).changed);
}

TEST(RecordTest, WhatItHasAcceptedInAnEarlierViewIsOver) {
  QuorumRecord state = NewRecord(MakeView(1));
  state =
      AnswerAsRecord(state, Ask(MessageKind::kPropose, {0, "a"}, MakeView(1), MakeView(2))).state;
  const RecordResult promise =
      AnswerAsRecord(state, Ask(MessageKind::kPrepare, {1, "b"}, MakeView(5)));
  EXPECT_EQ(promise.answer.kind, MessageKind::kPromise);
  EXPECT_TRUE(promise.answer.accepted.none());
  EXPECT_EQ(promise.answer.value, nullptr);
}

TEST(RecordTest, ADecidedViewIsCopiedAndThatIsAChange) {
  Message decided;
  decided.kind = MessageKind::kDecided;
  decided.value = MakeView(5);
  const RecordResult result = AnswerAsRecord(NewRecord(MakeView(1)), decided);
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.state.view->epoch, MakeEpoch(1, 5));
}

TEST(RecordTest, QuestionsThatMakeNoSenseGetItsViewAndNoVote) {
  Message other_base = Ask(MessageKind::kPrepare, {1, "b"}, MakeView(2));
  other_base.view = MakeEpoch(1, 3);
  const QuorumRecord state = NewRecord(MakeView(1));
  for (const Message& message : {other_base, Ask(MessageKind::kPropose, {0, "a"}, MakeView(1)),
                                 Ask(MessageKind::kPrepare, Ballot{}, MakeView(1)),
                                 Ask(MessageKind::kPropose, Ballot{}, MakeView(1), MakeView(2))}) {
    const RecordResult result = AnswerAsRecord(state, message);
    EXPECT_EQ(result.answer.kind, MessageKind::kDecided);
    EXPECT_FALSE(result.changed);
  }
}

}  // namespace
}  // namespace ringmaster::membership
